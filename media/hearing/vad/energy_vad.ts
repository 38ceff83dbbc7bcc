/**
 * Voice activity by energy over an adaptive noise floor. Per window of 20 ms: the bands 200 to
 * 2000 Hz (vowels; hum and handling noise lie below) and above 2000 Hz (sibilants), the level of
 * each in dB, its distance to the band's own noise floor, and a logistic curve over the larger one.
 * A few microseconds a window, nothing allocated. What it cannot do is tell speech from other sounds
 * that come and go: a slammed door, a voice in the background.
 */
import { NoiseFloor } from "./noise_floor.ts";
import type { Vad } from "./vad.ts";

const sampleRateHz = 16_000;
const windowSamples = 320;

/** Levels are in dBFS, where 0 is a full-scale square wave. A call may begin in the middle of a word: louder is speech. */
const lowRange = { minDb: -62, startDb: -44 };
const highRange = { minDb: -66, startDb: -44 };
/** Below this (of the input as it came) it is no noise but digital silence: a muted client or a filled gap tells nothing of the room. */
const digitalSilenceDb = -87;

/** Distance to the floor at which speech and noise are equally likely, and the curve's steepness. */
const evenDb = 6;
const slopeDb = 1.2;

/** Second-order Butterworth filters by the bilinear transform, normalized. */
function filterAt(cutoffHz: number): { low: number; high: number; a1: number; a2: number } {
  const k = Math.tan((Math.PI * cutoffHz) / sampleRateHz);
  const norm = 1 / (1 + Math.SQRT2 * k + k * k);
  return { low: k * k * norm, high: norm, a1: 2 * (k * k - 1) * norm, a2: (1 - Math.SQRT2 * k + k * k) * norm };
}

const highPass = filterAt(200);
const split = filterAt(2000);

export function createEnergyVad(): Vad {
  return new EnergyVad();
}

class EnergyVad implements Vad {
  readonly windowSamples = windowSamples;
  readonly sampleRateHz = sampleRateHz;
  /** Memories of the high-pass and of the split. */
  #high1 = 0;
  #high2 = 0;
  #low1 = 0;
  #low2 = 0;
  /** Energy of the newest window and of its bands. */
  #energy = 0;
  #lowEnergy = 0;
  #highEnergy = 0;
  readonly #lowFloor = new NoiseFloor(lowRange);
  readonly #highFloor = new NoiseFloor(highRange);

  process(window: Int16Array): number {
    if (window.length !== windowSamples) {
      throw new RangeError(`Cannot detect speech in ${window.length} samples: expected ${windowSamples}`);
    }
    this.#measure(window);
    if (levelOf(this.#energy) < digitalSilenceDb) {
      this.#lowFloor.skip();
      this.#highFloor.skip();
      return 0;
    }
    const lowDb = this.#lowFloor.distanceDb(levelOf(this.#lowEnergy));
    const highDb = this.#highFloor.distanceDb(levelOf(this.#highEnergy));
    const distanceDb = Math.max(lowDb, highDb);
    return 1 / (1 + Math.exp((evenDb - distanceDb) / slopeDb));
  }

  #measure(window: Int16Array): void {
    let high1 = this.#high1;
    let high2 = this.#high2;
    let low1 = this.#low1;
    let low2 = this.#low2;
    let energy = 0;
    let lowEnergy = 0;
    let highEnergy = 0;
    for (let i = 0; i < windowSamples; i++) {
      const x = window[i]!;
      energy += x * x;
      const voice = highPass.high * x + high1;
      high1 = -2 * highPass.high * x - highPass.a1 * voice + high2;
      high2 = highPass.high * x - highPass.a2 * voice;
      const low = split.low * voice + low1;
      low1 = 2 * split.low * voice - split.a1 * low + low2;
      low2 = split.low * voice - split.a2 * low;
      const high = voice - low;
      lowEnergy += low * low;
      highEnergy += high * high;
    }
    this.#high1 = settled(high1);
    this.#high2 = settled(high2);
    this.#low1 = settled(low1);
    this.#low2 = settled(low2);
    this.#energy = energy;
    this.#lowEnergy = lowEnergy;
    this.#highEnergy = highEnergy;
  }

  reset(): void {
    this.#high1 = 0;
    this.#high2 = 0;
    this.#low1 = 0;
    this.#low2 = 0;
    this.#lowFloor.reset();
    this.#highFloor.reset();
  }

  close(): void {}
}

function levelOf(energy: number): number {
  return 10 * Math.log10(energy / (windowSamples * 32_768 * 32_768) + 1e-12);
}

/** A tiny remainder would decay through denormal numbers, which are slow. */
function settled(value: number): number {
  return Math.abs(value) < 1e-9 ? 0 : value;
}
