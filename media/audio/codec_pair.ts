/** Both directions of a call's audio. One Opus instance serves both where the rates are equal. */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { createDecoder, type Decoder } from "./decoder.ts";
import { createEncoder, type Encoder } from "./encoder.ts";
import { type OpusCodec, type OpusOptions, openOpusCodec } from "./opus_codec.ts";

export interface CodecPair {
  decoder: Decoder;
  encoder: Encoder;
  /** Closes both. Idempotent. */
  close(): void;
}

/** @throws MediaFullError when no Opus instance is free; nothing is left open then */
export function openCodecPair(input: AudioFormat, output: AudioFormat, options: OpusOptions = {}): CodecPair {
  const opened = new Map<number, OpusCodec>();
  const opusFor = (format: AudioFormat): OpusCodec | undefined => {
    if (format.encoding !== "opus") return undefined;
    const codec = opened.get(format.sample_rate) ?? openOpusCodec(format.sample_rate, options);
    opened.set(format.sample_rate, codec);
    return codec;
  };
  const close = () => {
    for (const codec of opened.values()) codec.close();
  };
  try {
    return { decoder: createDecoder(input, opusFor(input)), encoder: createEncoder(output, opusFor(output)), close };
  } catch (cause) {
    close();
    throw cause;
  }
}
