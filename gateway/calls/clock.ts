/** Time as the gateway sees it, so that tests own it. */
import { nowMs } from "#media/media_host.ts";

export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  /** Runs `task` every `intervalMs` until the returned function is called. */
  every(intervalMs: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs,
  every(intervalMs, task) {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};
