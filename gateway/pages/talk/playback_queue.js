/**
 * What the player worklet plays: a ring of samples with the marks that stand between them. Pure,
 * so that it is tested without a browser. Positions count samples since the beginning.
 */
export class PlaybackQueue {
  /** @param {number} capacity in samples; what does not fit is dropped and counted */
  constructor(capacity) {
    this.ring = new Float32Array(capacity);
    this.written = 0;
    this.played = 0;
    this.dropped = 0;
    /** @type {{position: number, name: string}[]} */
    this.marks = [];
  }

  get buffered() {
    return this.written - this.played;
  }

  /** @param {Int16Array} samples */
  push(samples) {
    const fits = Math.min(samples.length, this.ring.length - this.buffered);
    for (let i = 0; i < fits; i++) this.ring[this.written++ % this.ring.length] = samples[i] / 32768;
    this.dropped += samples.length - fits;
  }

  /** A mark is reached when everything that was pushed before it has been played. */
  mark(name) {
    this.marks.push({ position: this.written, name });
  }

  /**
   * Fills `output` and says how many samples were there; the rest is left as it is.
   * @param {Float32Array} output
   */
  read(output) {
    const count = Math.min(output.length, this.buffered);
    for (let i = 0; i < count; i++) output[i] = this.ring[this.played++ % this.ring.length];
    return count;
  }

  /** Names of the marks reached since the last call, in order. */
  reachedMarks() {
    let reached = 0;
    while (reached < this.marks.length && this.marks[reached].position <= this.played) reached++;
    return this.marks.splice(0, reached).map((mark) => mark.name);
  }

  /** Drops all that is unplayed; returns the names of the marks that will never be reached. */
  clear() {
    const cleared = this.marks.map((mark) => mark.name);
    this.marks = [];
    this.played = this.written;
    return cleared;
  }
}
