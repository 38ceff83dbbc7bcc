/** From samples at the format's own rate to bytes as a client gets them. */
import { type AudioFormat, frameMsFor } from "#contracts/audio_format.ts";
import { encodeAlaw, encodeMulaw } from "./g711.ts";
import { type OpusCodec, openOpusCodec } from "./opus_codec.ts";

export interface Encoder {
  /**
   * The bytes of one frame, the caller's to keep. Opus takes full frames only (one packet each);
   * the last frame of PCM and G.711 may be shorter.
   */
  encode(frame: Int16Array): Uint8Array;
  /** Samples of a full frame: 20 ms, or 40 ms of PCM above 16 kHz. */
  readonly frameSamples: number;
  /** Idempotent. */
  close(): void;
}

/**
 * @param opus the instance to encode with, which stays its owner's; one is opened without it
 * @throws MediaFullError when no Opus instance is free
 */
export function createEncoder(format: AudioFormat, opus?: OpusCodec): Encoder {
  const frameSamples = (format.sample_rate * frameMsFor(format)) / 1000;
  switch (format.encoding) {
    case "pcm_s16le":
      return { encode: littleEndianBytes, frameSamples, close() {} };
    case "mulaw":
      return { encode: (frame) => encodeMulaw(frame, new Uint8Array(frame.length)), frameSamples, close() {} };
    case "alaw":
      return { encode: (frame) => encodeAlaw(frame, new Uint8Array(frame.length)), frameSamples, close() {} };
    case "opus": {
      const codec = opus ?? openOpusCodec(format.sample_rate);
      return {
        encode: (frame) => codec.encode(frame),
        frameSamples,
        close() {
          if (!opus) codec.close();
        },
      };
    }
  }
}

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

function littleEndianBytes(frame: Int16Array): Uint8Array {
  if (isLittleEndian) return new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength).slice();
  const bytes = new Uint8Array(frame.length * 2);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < frame.length; i++) view.setInt16(2 * i, frame[i]!, true);
  return bytes;
}
