/**
 * The last messages of a call, for replay after a lost link. Policy when full: the oldest goes,
 * and a client that was away for longer learns how many it missed.
 */
export class ReplayRing {
  readonly #texts: (string | undefined)[];
  #newestSeq = 0;

  constructor(messagesMax: number) {
    this.#texts = new Array(messagesMax);
  }

  /** Sequence number of the newest message; 0 before the first. */
  get seq(): number {
    return this.#newestSeq;
  }

  /** @param seq one more than the last one's */
  push(seq: number, text: string): void {
    if (seq !== this.#newestSeq + 1) throw new Error(`Cannot keep message ${seq}: expected ${this.#newestSeq + 1}`);
    this.#newestSeq = seq;
    this.#texts[seq % this.#texts.length] = text;
  }

  /** Everything after `lastSeq` that is still there, oldest first, and how many are not. */
  since(lastSeq: number): { texts: string[]; missed: number } {
    const oldestHeld = Math.max(1, this.#newestSeq - this.#texts.length + 1);
    const first = Math.max(lastSeq + 1, oldestHeld);
    const texts: string[] = [];
    for (let seq = first; seq <= this.#newestSeq; seq++) texts.push(this.#texts[seq % this.#texts.length] ?? "");
    return { texts, missed: Math.max(0, first - lastSeq - 1) };
  }
}
