/**
 * Taking reservations on the bus, and giving back what was taken for a caller who then got no call. The
 * bus may have taken one without having said so, or be away when one is to be given back: what is not
 * known to be back is tried again until the reservation's time is over, so that the caller, who was told
 * to come back, finds it. Who took is named: nobody gives back what somebody else has taken since.
 */
import { randomUUID } from "node:crypto";
import type { Bus, TakeResult } from "#bus/bus.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { Log } from "../log.ts";
import type { Clock } from "./clock.ts";

const againEveryMs = 500;
const pendingMax = 10_000;

/** One caller's take of one reservation. */
export interface Take {
  callId: string;
  taker: string;
}

export class ReservationTakes {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Not known to be back, the oldest first. */
  readonly #pending = new Map<Take, { untilMs: number; isUnderWay: boolean }>();
  readonly #stopTicker: () => void;

  constructor(deps: { bus: Bus; clock: Clock; log: Log }) {
    this.#bus = deps.bus;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#stopTicker = deps.clock.every(againEveryMs, () => {
      for (const take of this.#pending.keys()) void this.#tryAgain(take);
    });
  }

  newTake(callId: string): Take {
    return { callId, taker: randomUUID() };
  }

  /** @throws when the bus does not answer; then nobody has the reservation, at the latest when the bus is there again */
  async take(take: Take): Promise<TakeResult> {
    try {
      return await this.#bus.takeReservation(take.callId, take.taker);
    } catch (error) {
      this.#remember(take);
      throw error;
    }
  }

  /** Settles when it is back, or is going to be once the bus answers. */
  async giveBack(take: Take): Promise<void> {
    this.#remember(take);
    await this.#tryAgain(take);
  }

  close(): void {
    this.#stopTicker();
  }

  #remember(take: Take): void {
    const [oldest] = this.#pending.keys();
    if (oldest && this.#pending.size >= pendingMax) this.#pending.delete(oldest);
    this.#pending.set(take, {
      untilMs: this.#clock.nowMs() + voiceLimits.reservationTtlS * 1000,
      isUnderWay: false,
    });
  }

  async #tryAgain(take: Take): Promise<void> {
    const pending = this.#pending.get(take);
    if (!pending || pending.isUnderWay) return;
    pending.isUnderWay = true;
    try {
      await this.#bus.restoreReservation(take.callId, take.taker);
      this.#pending.delete(take);
    } catch (err) {
      pending.isUnderWay = false;
      if (this.#clock.nowMs() < pending.untilMs) return;
      this.#pending.delete(take);
      this.#log.warn({ err, call_id: take.callId }, "a reservation is not given back");
    }
  }
}
