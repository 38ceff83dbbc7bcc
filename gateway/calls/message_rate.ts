/**
 * How many messages a client may send, of any kind and size: 500 a second with a burst of 5,000.
 * The shortest useful frame is 5 ms, so that only abuse comes near; audio itself is paced by its
 * duration in `input_pacing.ts`. Pure: the clock is an argument.
 */
const perSecond = 500;
const burst = 5000;

export class MessageRate {
  #allowance = burst;
  #refilledAtMs: number;

  constructor(nowMs: number) {
    this.#refilledAtMs = nowMs;
  }

  /** Counts one message. @returns whether it is within the rate */
  count(nowMs: number): boolean {
    this.#allowance = Math.min(burst, this.#allowance + ((nowMs - this.#refilledAtMs) * perSecond) / 1000) - 1;
    this.#refilledAtMs = nowMs;
    return this.#allowance >= 0;
  }
}
