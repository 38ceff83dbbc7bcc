/** Speech at the rate of its provider, brought to the rate of the call's output. */

import type { Pcm } from "#providers/provider.ts";
import { createResampler, type Resampler } from "../audio/resampler.ts";

export class OutputRate {
  readonly #toHz: number;
  #resampler: Resampler | undefined;
  #fromHz = 0;

  constructor(toHz: number) {
    this.#toHz = toHz;
  }

  /** The samples themselves where the rates are equal, else new ones. */
  convert(pcm: Pcm): Int16Array {
    if (pcm.sampleRateHz === this.#toHz) return pcm.samples;
    if (this.#fromHz !== pcm.sampleRateHz) this.drop();
    this.#fromHz = pcm.sampleRateHz;
    this.#resampler ??= createResampler(pcm.sampleRateHz, this.#toHz);
    // The resampler's output is a view that the next call overwrites.
    return this.#resampler.process(pcm.samples).slice();
  }

  /** The end of the utterance: what the resampler's filter still holds. */
  takeTail(): Int16Array {
    if (!this.#resampler) return new Int16Array(0);
    const silence = new Int16Array(Math.ceil((this.#resampler.latencyMs * this.#fromHz) / 1000));
    const tail = this.#resampler.process(silence).slice();
    this.drop();
    return tail;
  }

  /** What follows is another utterance. */
  drop(): void {
    this.#resampler?.close();
    this.#resampler = undefined;
  }
}
