/** The part of the package that is used; it brings no types. Sizes and rates are numbers, pointers are byte offsets. */
declare module "@echogarden/speex-resampler-wasm/simd" {
  export interface SpeexModule {
    /** Replaced when the memory grows: read them anew after a call that can allocate. */
    readonly HEAP16: Int16Array;
    readonly HEAP32: Int32Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    /** Answers a state, or 0; the error code is stored at `errorPointer`. */
    _speex_resampler_init(channels: number, inHz: number, outHz: number, quality: number, errorPointer: number): number;
    _speex_resampler_destroy(state: number): void;
    _speex_resampler_reset_mem(state: number): number;
    _speex_resampler_skip_zeros(state: number): number;
    _speex_resampler_get_input_latency(state: number): number;
    /** Lengths are read and written in place: room before, samples used and made after. */
    _speex_resampler_process_int(
      state: number,
      channel: number,
      input: number,
      inputLengthPointer: number,
      output: number,
      outputLengthPointer: number,
    ): number;
  }
  export default function createModule(): Promise<SpeexModule>;
}
