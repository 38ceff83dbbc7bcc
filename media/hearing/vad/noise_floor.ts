/**
 * How far a level stands above the noise. The floor follows the minimum of the smoothed level over
 * the last 3.2 s (minimum statistics, after R. Martin, IEEE Trans. Speech Audio Proc. 9(5), 2001):
 * speech has gaps, noise has none. Noise that sets in suddenly would pass for speech for as long; so
 * a level that hardly varies for 0.8 s, as no speech does, is taken as the floor at once.
 */

const blockWindows = 16;
const blocks = 10;
const steadyWindows = 40;
const steadyDeviationDbMax = 1;
/** The minimum of a noise's smoothed level lies about this far below its mean. */
const minimumBiasDb = 1.5;
/** Share of the newest window in the smoothed level. */
const smoothing = 0.7;

export interface FloorRange {
  /** The floor is never taken to be lower. */
  minDb: number;
  /** Assumed until something quieter was heard. */
  startDb: number;
}

export class NoiseFloor {
  readonly #range: FloorRange;
  #smoothedDb = 0;
  /** Nothing was heard yet, or nothing since `skip`. */
  #isFresh = true;
  /** Minima of the last blocks of windows; one of them is still growing. */
  readonly #minima = new Float64Array(blocks);
  #block = 0;
  #windowInBlock = 0;
  /** The newest levels, for telling steady noise. */
  readonly #levels = new Float64Array(steadyWindows);
  #levelCount = 0;

  constructor(range: FloorRange) {
    this.#range = range;
    this.reset();
  }

  /** Takes the level of the next window of 20 ms; answers how far it stands above the floor, in dB. */
  distanceDb(levelDb: number): number {
    this.#smoothedDb = this.#isFresh ? levelDb : this.#smoothedDb + smoothing * (levelDb - this.#smoothedDb);
    this.#isFresh = false;
    this.#minima[this.#block] = Math.min(this.#minima[this.#block]!, this.#smoothedDb);
    if (++this.#windowInBlock === blockWindows) {
      this.#windowInBlock = 0;
      this.#block = (this.#block + 1) % blocks;
      this.#minima[this.#block] = this.#smoothedDb;
    }
    this.#levels[this.#levelCount++ % steadyWindows] = levelDb;
    if (this.#levelCount >= steadyWindows && this.#levelCount % 5 === 0) this.#takeSteadyLevel();
    return this.#smoothedDb - this.#floorDb();
  }

  /** A window that tells nothing of the room: the floor stays as it is. */
  skip(): void {
    this.#isFresh = true;
  }

  #floorDb(): number {
    let floor = this.#minima[0]!;
    for (let i = 1; i < blocks; i++) floor = Math.min(floor, this.#minima[i]!);
    return Math.max(this.#range.minDb, floor + minimumBiasDb);
  }

  #takeSteadyLevel(): void {
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < steadyWindows; i++) {
      const level = this.#levels[i]!;
      sum += level;
      squares += level * level;
    }
    const mean = sum / steadyWindows;
    const variance = squares / steadyWindows - mean * mean;
    if (variance < steadyDeviationDbMax * steadyDeviationDbMax) this.#minima.fill(mean - minimumBiasDb);
  }

  reset(): void {
    this.#isFresh = true;
    this.#minima.fill(this.#range.startDb - minimumBiasDb);
    this.#block = 0;
    this.#windowInBlock = 0;
    this.#levels.fill(0);
    this.#levelCount = 0;
  }
}
