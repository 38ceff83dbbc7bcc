/** From bytes as a client sends them to samples, at the format's own rate. */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { decodeAlaw, decodeMulaw } from "./g711.ts";
import { type OpusCodec, openOpusCodec } from "./opus_codec.ts";

export interface Decoder {
  /**
   * The samples in `bytes`, at `format.sample_rate`: a view that the next call overwrites. PCM and
   * G.711 come in any length, half a sample at the end of PCM waits for its other half; Opus comes
   * one packet a call.
   */
  decode(bytes: Uint8Array): Int16Array;
  /** Opus packets that were concealed because they could not be decoded. */
  readonly badPackets: number;
  /** Idempotent. */
  close(): void;
}

/**
 * @param opus the instance to decode with, which stays its owner's; one is opened without it
 * @throws MediaFullError when no Opus instance is free
 */
export function createDecoder(format: AudioFormat, opus?: OpusCodec): Decoder {
  switch (format.encoding) {
    case "pcm_s16le":
      return createPcmDecoder();
    case "mulaw":
      return createG711Decoder(decodeMulaw);
    case "alaw":
      return createG711Decoder(decodeAlaw);
    case "opus": {
      const codec = opus ?? openOpusCodec(format.sample_rate);
      return {
        decode: (packet) => codec.decode(packet),
        get badPackets() {
          return codec.badPackets;
        },
        close() {
          if (!opus) codec.close();
        },
      };
    }
  }
}

function createPcmDecoder(): Decoder {
  let samples = new Int16Array(1024);
  /** Low byte of a sample whose high byte is still to come. */
  let tail: number | undefined;
  return {
    decode(bytes) {
      const sampleCount = (bytes.length + (tail === undefined ? 0 : 1)) >> 1;
      if (samples.length < sampleCount) samples = new Int16Array(sampleCount);
      let from = 0;
      let to = 0;
      if (tail !== undefined && bytes.length > 0) {
        samples[to++] = tail | (bytes[from++]! << 8);
        tail = undefined;
      }
      for (; to < sampleCount; from += 2) samples[to++] = bytes[from]! | (bytes[from + 1]! << 8);
      if (from < bytes.length) tail = bytes[from];
      return samples.subarray(0, sampleCount);
    },
    badPackets: 0,
    close() {},
  };
}

function createG711Decoder(decode: (bytes: Uint8Array, into: Int16Array) => Int16Array): Decoder {
  let samples = new Int16Array(1024);
  return {
    decode(bytes) {
      if (samples.length < bytes.length) samples = new Int16Array(bytes.length);
      return decode(bytes, samples).subarray(0, bytes.length);
    },
    badPackets: 0,
    close() {},
  };
}
