/** Options of `openai`. */
import { type Static, Type } from "@sinclair/typebox";
import { options, text } from "../option_schemas.ts";

/** Until the first byte of the answer. */
const first_byte_timeout_ms = (byDefault: number) =>
  Type.Integer({ minimum: 100, maximum: 600_000, default: byDefault });

export const OpenAiLlmOptions = options({
  max_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  first_byte_timeout_ms: first_byte_timeout_ms(60_000),
});
export type OpenAiLlmOptions = Static<typeof OpenAiLlmOptions>;

export const OpenAiSttOptions = options({
  /** Words that are likely to be said: names, places. */
  prompt: Type.Optional(text(1000)),
  first_byte_timeout_ms: first_byte_timeout_ms(10_000),
});
export type OpenAiSttOptions = Static<typeof OpenAiSttOptions>;

export const OpenAiTtsOptions = options({
  /** How it is to be said, for models that take directions. */
  instructions: Type.Optional(text(4000)),
  speed: Type.Optional(Type.Number({ minimum: 0.25, maximum: 4 })),
  first_byte_timeout_ms: first_byte_timeout_ms(10_000),
});
export type OpenAiTtsOptions = Static<typeof OpenAiTtsOptions>;

/** What an agent means that names no model. */
export const sttModelDefault = "gpt-4o-mini-transcribe";
export const ttsModelDefault = "gpt-4o-mini-tts";
