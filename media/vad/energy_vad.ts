/**
 * Voice activity by energy over an adaptive noise floor. Per window of 20 ms: high-pass at 200 Hz
 * (hum and handling noise lie below, the formants of speech above), level in dB, distance to the
 * floor, and a logistic curve over that distance.
 *
 * The floor follows the minimum of the level over the last 3.2 s (minimum statistics, after
 * R. Martin, IEEE Trans. Speech Audio Proc. 9(5), 2001): speech has gaps, noise has none. Noise that
 * sets in suddenly would count as speech for as long; so a level that hardly varies for 0.8 s, as
 * no speech does, is taken as the floor at once. A few microseconds a window, nothing allocated.
 */
import type { Vad } from "./vad.ts";

const sampleRateHz = 16_000;
const windowSamples = 320;

/** Levels in dBFS of the filtered signal, where 0 is a full-scale square wave. */
const floorMinDb = -62;
/** Assumed until something quieter was heard: a call may begin in the middle of a word. */
const floorAtStartDb = -46;
/** Below this it is no noise but digital silence: a muted client or a filled gap tells nothing of the room. */
const digitalSilenceDb = -84;

/** Distance to the floor at which speech and noise are equally likely, and the curve's steepness. */
const evenDb = 6.5;
const slopeDb = 1.3;
/** The minimum of a noise's smoothed level lies about this far below its mean. */
const minimumBiasDb = 1.5;

const blockWindows = 16;
const blocks = 10;
const steadyWindows = 40;
const steadyDeviationDbMax = 1;

/** Second-order Butterworth high-pass by the bilinear transform. */
const highPass = (() => {
  const cutoffHz = 200;
  const k = Math.tan((Math.PI * cutoffHz) / sampleRateHz);
  const norm = 1 / (1 + Math.SQRT2 * k + k * k);
  return { b0: norm, b1: -2 * norm, a1: 2 * (k * k - 1) * norm, a2: (1 - Math.SQRT2 * k + k * k) * norm };
})();

export function createEnergyVad(): Vad {
  return new EnergyVad();
}

class EnergyVad implements Vad {
  readonly windowSamples = windowSamples;
  readonly sampleRateHz = sampleRateHz;
  /** The filter's memory. */
  #z1 = 0;
  #z2 = 0;
  #smoothedDb = floorMinDb;
  /** Minima of the last blocks of windows; the newest one is still growing. */
  readonly #minima = new Float64Array(blocks);
  #block = 0;
  #windowInBlock = 0;
  /** The newest levels, for telling steady noise. */
  readonly #levels = new Float64Array(steadyWindows);
  #levelCount = 0;

  constructor() {
    this.reset();
  }

  process(window: Int16Array): number {
    if (window.length !== windowSamples) {
      throw new RangeError(`Cannot detect speech in ${window.length} samples: expected ${windowSamples}`);
    }
    const levelDb = this.#levelOf(window);
    if (levelDb < digitalSilenceDb) {
      this.#smoothedDb = floorMinDb;
      return 0;
    }
    this.#smoothedDb += 0.7 * (levelDb - this.#smoothedDb);
    this.#followFloor(this.#smoothedDb, levelDb);
    return 1 / (1 + Math.exp((evenDb - (this.#smoothedDb - this.#floorDb())) / slopeDb));
  }

  #levelOf(window: Int16Array): number {
    const { b0, b1, a1, a2 } = highPass;
    let z1 = this.#z1;
    let z2 = this.#z2;
    let energy = 0;
    for (let i = 0; i < windowSamples; i++) {
      const x = window[i]!;
      const y = b0 * x + z1;
      z1 = b1 * x - a1 * y + z2;
      z2 = b0 * x - a2 * y;
      energy += y * y;
    }
    // A tiny remainder would decay through denormal numbers, which are slow.
    this.#z1 = Math.abs(z1) < 1e-9 ? 0 : z1;
    this.#z2 = Math.abs(z2) < 1e-9 ? 0 : z2;
    return 10 * Math.log10(energy / (windowSamples * 32_768 * 32_768) + 1e-12);
  }

  #floorDb(): number {
    let floor = this.#minima[0]!;
    for (let i = 1; i < blocks; i++) floor = Math.min(floor, this.#minima[i]!);
    return Math.max(floorMinDb, floor + minimumBiasDb);
  }

  #followFloor(smoothedDb: number, levelDb: number): void {
    this.#minima[this.#block] = Math.min(this.#minima[this.#block]!, smoothedDb);
    if (++this.#windowInBlock === blockWindows) {
      this.#windowInBlock = 0;
      this.#block = (this.#block + 1) % blocks;
      this.#minima[this.#block] = smoothedDb;
    }
    this.#levels[this.#levelCount++ % steadyWindows] = levelDb;
    if (this.#levelCount >= steadyWindows && this.#levelCount % 5 === 0) this.#takeSteadyLevel();
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
    this.#z1 = 0;
    this.#z2 = 0;
    this.#smoothedDb = floorMinDb;
    this.#minima.fill(floorAtStartDb);
    this.#block = 0;
    this.#windowInBlock = 0;
    this.#levels.fill(0);
    this.#levelCount = 0;
  }

  close(): void {}
}
