/**
 * Sample rate conversion on speexdsp (WASM SIMD, quality 5): one module a thread, one state a
 * direction. The filter is linear phase; its delay is `latencyMs` (5 ms and less), which the output
 * keeps: it begins with that much silence, so that sample counts stay in proportion.
 */
import loadSpeex from "@echogarden/speex-resampler-wasm/simd";

/** 0 (fast) … 10 (best); 5 has 80 dB of stop band: below what a telephone or a browser adds. */
const quality = 5;
/** Input is taken in pieces of at most this many samples, so that the buffers have one size. */
const pieceSamples = 4800;

export interface Resampler {
  /**
   * Converts the next samples of the stream. The answer is a view that the next call overwrites;
   * it is the input itself where the rates are equal.
   */
  process(samples: Int16Array): Int16Array;
  readonly latencyMs: number;
  /** Forgets the stream: what follows is a new one. */
  reset(): void;
  /** Gives the state back. Idempotent; nothing may be processed afterwards. */
  close(): void;
}

const speex = await loadSpeex();
/** Every state of the thread takes its turn in these buffers: nothing is kept in them between calls. */
const inputPointer = allocate(pieceSamples * 2);
/** Six times up (8 to 48 kHz) is the most, and the rounding of a fraction. */
const outputSamplesMax = pieceSamples * 6 + 16;
const outputPointer = allocate(outputSamplesMax * 2);
const lengthsPointer = allocate(8);

function allocate(bytes: number): number {
  const pointer = speex._malloc(bytes);
  if (pointer === 0) throw new Error(`Cannot allocate ${bytes} bytes for resampling: the memory of the module is full`);
  return pointer;
}

/** @throws Error when a rate is not 8 to 48 kHz or the module has no memory left */
export function createResampler(fromHz: number, toHz: number): Resampler {
  if (fromHz === toHz) return { process: (samples) => samples, latencyMs: 0, reset() {}, close() {} };
  return new SpeexResampler(fromHz, toHz);
}

class SpeexResampler implements Resampler {
  readonly latencyMs: number;
  readonly #fromHz: number;
  readonly #toHz: number;
  #state: number;
  #output = new Int16Array(0);

  constructor(fromHz: number, toHz: number) {
    for (const hz of [fromHz, toHz]) {
      if (!(hz >= 8000 && hz <= 48_000)) throw new Error(`Cannot resample at ${hz} Hz: expected 8000 to 48000`);
    }
    this.#fromHz = fromHz;
    this.#toHz = toHz;
    this.#state = speex._speex_resampler_init(1, fromHz, toHz, quality, lengthsPointer);
    if (this.#state === 0) throw new Error(`Cannot resample from ${fromHz} to ${toHz} Hz: no memory for the filter`);
    this.latencyMs = (speex._speex_resampler_get_input_latency(this.#state) * 1000) / fromHz;
  }

  process(samples: Int16Array): Int16Array {
    if (this.#state === 0) throw new Error("Cannot resample: the resampler is closed");
    const room = Math.ceil((samples.length * this.#toHz) / this.#fromHz) + 16;
    if (this.#output.length < room) this.#output = new Int16Array(room);
    let made = 0;
    for (let at = 0; at < samples.length; ) {
      const piece = samples.subarray(at, Math.min(at + pieceSamples, samples.length));
      const { used, written } = this.#convert(piece, made);
      if (used === 0 && written === 0) throw new Error("Cannot resample: the filter takes no input");
      at += used;
      made += written;
    }
    return this.#output.subarray(0, made);
  }

  /** One piece into `#output` at `offset`. The views are read anew: memory may have grown since. */
  #convert(piece: Int16Array, offset: number): { used: number; written: number } {
    speex.HEAP16.set(piece, inputPointer >> 1);
    const lengths = lengthsPointer >> 2;
    speex.HEAP32[lengths] = piece.length;
    speex.HEAP32[lengths + 1] = outputSamplesMax;
    const failed = speex._speex_resampler_process_int(
      this.#state,
      0,
      inputPointer,
      lengthsPointer,
      outputPointer,
      lengthsPointer + 4,
    );
    if (failed !== 0) throw new Error(`Cannot resample: speexdsp answers ${failed}`);
    const used = speex.HEAP32[lengths] ?? 0;
    const written = speex.HEAP32[lengths + 1] ?? 0;
    const from = outputPointer >> 1;
    this.#output.set(speex.HEAP16.subarray(from, from + written), offset);
    return { used, written };
  }

  reset(): void {
    if (this.#state !== 0) speex._speex_resampler_reset_mem(this.#state);
  }

  close(): void {
    if (this.#state === 0) return;
    speex._speex_resampler_destroy(this.#state);
    this.#state = 0;
  }
}
