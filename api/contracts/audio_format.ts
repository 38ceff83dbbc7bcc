/**
 * Audio formats on the wire. Audio is mono everywhere; a frame on the wire has no header.
 */
import { type Static, Type } from "@sinclair/typebox";

export const encodings = ["pcm_s16le", "mulaw", "alaw", "opus"] as const;
export type Encoding = (typeof encodings)[number];

/** Names that other vendors give to the same encodings; accepted on input, never answered. */
export const encodingAliases: Readonly<Record<string, Encoding>> = {
  linear16: "pcm_s16le",
  pcmu: "mulaw",
  ulaw: "mulaw",
  pcma: "alaw",
};

export const sampleRatesHz = [8000, 16000, 24000, 32000, 44100, 48000] as const;
export type SampleRateHz = (typeof sampleRatesHz)[number];

/** Opus (RFC 6716) has no 32 or 44.1 kHz. */
export const opusSampleRatesHz: readonly SampleRateHz[] = [8000, 16000, 24000, 48000];

export const AudioFormat = Type.Object({
  encoding: Type.Union(
    encodings.map((name) => Type.Literal(name)),
    { description: "how samples are written" },
  ),
  sample_rate: Type.Integer({ description: "Hz" }),
  container: Type.Literal("raw", { description: "frames without a header" }),
});
export interface AudioFormat {
  encoding: Encoding;
  /** Hz, one of `sampleRatesHz` */
  sample_rate: SampleRateHz;
  container: "raw";
}

/** What a client may ask for: every field optional, aliases accepted. */
export const AudioFormatRequest = Type.Object(
  {
    encoding: Type.Optional(Type.String({ description: "how samples are written; pcm_s16le unless given" })),
    sample_rate: Type.Optional(
      Type.Integer({ description: "Hz; 16000 for PCM, 8000 for mulaw and alaw, 48000 for opus unless given" }),
    ),
    container: Type.Optional(Type.String({ description: "raw, or none, which means the same" })),
  },
  { additionalProperties: false },
);
export type AudioFormatRequest = Static<typeof AudioFormatRequest>;

/** A wrong field of a requested format, by field name. */
export class AudioFormatError extends Error {
  readonly field: "encoding" | "sample_rate" | "container";
  constructor(field: "encoding" | "sample_rate" | "container", message: string) {
    super(message);
    this.name = "AudioFormatError";
    this.field = field;
  }
}

/**
 * The format that a request means: aliases resolved, defaults filled in.
 * Defaults: pcm_s16le at 16000 Hz; mulaw and alaw are always 8000 Hz; opus is 48000 Hz.
 * @throws AudioFormatError naming the field and the expectation
 */
export function audioFormatFor(request: AudioFormatRequest = {}): AudioFormat {
  const asked = request.encoding ?? "pcm_s16le";
  const encoding = encodings.find((name) => name === asked) ?? encodingAliases[asked];
  if (!encoding) {
    throw new AudioFormatError(
      "encoding",
      `Expected one of ${[...encodings, ...Object.keys(encodingAliases)].join(", ")}`,
    );
  }
  const container = request.container ?? "raw";
  if (container !== "raw" && container !== "none") {
    throw new AudioFormatError("container", "Expected raw or none");
  }
  return { encoding, sample_rate: sampleRateFor(encoding, request.sample_rate), container: "raw" };
}

function sampleRateFor(encoding: Encoding, asked: number | undefined): SampleRateHz {
  const allowed: readonly SampleRateHz[] =
    encoding === "mulaw" || encoding === "alaw" ? [8000] : encoding === "opus" ? opusSampleRatesHz : sampleRatesHz;
  const byDefault: SampleRateHz = encoding === "opus" ? 48000 : encoding === "pcm_s16le" ? 16000 : 8000;
  const rate = allowed.find((hz) => hz === (asked ?? byDefault));
  if (!rate) throw new AudioFormatError("sample_rate", `Expected one of ${allowed.join(", ")} for ${encoding}`);
  return rate;
}

/** Length of one output frame: 20 ms, and 40 ms for raw PCM above 16 kHz (fewer, larger messages). */
export function frameMsFor(format: AudioFormat): 20 | 40 {
  return format.encoding === "pcm_s16le" && format.sample_rate > 16000 ? 40 : 20;
}

/** Bytes of one millisecond of audio; opus is variable and answers undefined. */
export function bytesPerMsFor(format: AudioFormat): number | undefined {
  if (format.encoding === "opus") return undefined;
  return (format.sample_rate * (format.encoding === "pcm_s16le" ? 2 : 1)) / 1000;
}
