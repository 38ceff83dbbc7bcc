/** The compiled libopus 1.4 inside the package `opusscript`. Pointers are byte offsets into its memory, which never grows. */
declare module "opusscript/build/opusscript_native_wasm.js" {
  /** One encoder and one decoder. */
  export interface OpusHandler {
    /** `inputBytes` samples are rearranged in place first: 0 leaves 16-bit samples as they stand. Answers the packet's length, or a negative error. */
    _encode(inputPointer: number, inputBytes: number, packetPointer: number, frameSamples: number): number;
    /** Writes two 16-bit words a sample, its low and its high byte. Answers the number of samples, or a negative error. */
    _decode(packetPointer: number, packetBytes: number, outputPointer: number): number;
    _encoder_ctl(request: number, value: number): number;
    _decoder_ctl(request: number, value: number): number;
  }
  export interface OpusModule {
    readonly HEAPU8: Uint8Array;
    readonly HEAP16: Int16Array;
    _malloc(bytes: number): number;
    OpusScriptHandler: new (sampleRateHz: number, channels: number, application: number) => OpusHandler;
  }
  /** A new module with a memory of its own. */
  export default function createModule(): OpusModule;
}
