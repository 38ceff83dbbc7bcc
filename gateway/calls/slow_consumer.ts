/**
 * When a client that does not read is given up: more than 5 s of audio or 512 KiB unsent for 5 s,
 * or nothing at all taken for 5 s while its own frames keep coming. A link on which nothing moves
 * in either direction is not slow but lost, and keepalive finds that out.
 */
export interface Backlog {
  unsentMs: number;
  unsentBytes: number;
  /** Bytes that have ever been handed over for sending. */
  acceptedBytes: number;
  /** When the last frame came in. */
  frameAtMs: number;
}

const unsentMsMax = 5000;
const unsentBytesMax = 512 * 1024;
const patienceMs = 5000;
/** Frames came in so lately: the link is not lost. */
export const liveWithinMs = 2000;

export class SlowConsumerWatch {
  #overSinceMs: number | undefined;
  #sentBytes = 0;
  #progressAtMs: number | undefined;

  /** @returns whether the client is too slow to be kept; to be asked regularly while anything is unsent */
  isTooSlow(nowMs: number, backlog: Backlog): boolean {
    if (backlog.unsentBytes === 0) {
      this.reset();
      return false;
    }
    const over = backlog.unsentMs > unsentMsMax || backlog.unsentBytes > unsentBytesMax;
    this.#overSinceMs = over ? (this.#overSinceMs ?? nowMs) : undefined;

    const sent = backlog.acceptedBytes - backlog.unsentBytes;
    if (this.#progressAtMs === undefined || sent > this.#sentBytes) this.#progressAtMs = nowMs;
    this.#sentBytes = sent;

    const stalled = nowMs - this.#progressAtMs >= patienceMs && nowMs - backlog.frameAtMs < liveWithinMs;
    return stalled || (this.#overSinceMs !== undefined && nowMs - this.#overSinceMs >= patienceMs);
  }

  reset(): void {
    this.#overSinceMs = undefined;
    this.#progressAtMs = undefined;
  }
}
