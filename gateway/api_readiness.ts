/**
 * Whether the api behind a gateway is there. One miss is a restart of one of several apis; a gateway that
 * left the balancer for it would take its calls' REST with it. Before the first answer there is no gateway yet.
 */
import type { Clock } from "./calls/clock.ts";

/** An api that has failed for so long is gone. */
export const apiLostMs = 10_000;

export interface ApiReadiness {
  isReady(): Promise<boolean>;
}

/** @param ask asks the api, and never throws */
export function createApiReadiness(ask: () => Promise<boolean>, clock: Pick<Clock, "nowMs">): ApiReadiness {
  /** When the misses began that have not ended; before the first answer always. */
  let failingSinceMs = Number.NEGATIVE_INFINITY;
  return {
    async isReady() {
      if (await ask()) {
        failingSinceMs = Number.POSITIVE_INFINITY;
        return true;
      }
      failingSinceMs = Math.min(failingSinceMs, clock.nowMs());
      return clock.nowMs() - failingSinceMs < apiLostMs;
    },
  };
}
