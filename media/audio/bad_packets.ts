/**
 * When a client is to be told that its audio cannot be decoded: five bad packets in a row, or a fifth
 * of five seconds. Told once; again only after five seconds without a bad one. Pure.
 */
const badInARowMax = 5;
const windowMs = 5000;
const badShareMax = 0.2;

export class BadPacketWatch {
  #badBefore = 0;
  #badInARow = 0;
  #window = { packets: 0, bad: 0, ms: 0 };
  #isTold = false;

  /** @param badSoFar the decoder's count, after a packet of `durationMs`. @returns whether to tell now */
  heard(badSoFar: number, durationMs: number): boolean {
    const isBad = badSoFar > this.#badBefore;
    this.#badBefore = badSoFar;
    this.#badInARow = isBad ? this.#badInARow + 1 : 0;
    const { packets, bad, ms } = this.#window;
    this.#window = { packets: packets + 1, bad: bad + Number(isBad), ms: ms + durationMs };
    const isMuch = this.#badInARow >= badInARowMax || this.#isWindowBad();
    const tells = isMuch && !this.#isTold;
    this.#isTold ||= tells;
    return tells;
  }

  /** Closes the window that is over. */
  #isWindowBad(): boolean {
    const { packets, bad, ms } = this.#window;
    if (ms < windowMs) return false;
    this.#window = { packets: 0, bad: 0, ms: 0 };
    if (bad === 0) this.#isTold = false;
    return bad >= packets * badShareMax;
  }
}
