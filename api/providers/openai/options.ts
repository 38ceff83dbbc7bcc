/** Options of `openai`. */
import { type Static, Type } from "@sinclair/typebox";
import { options } from "../option_schemas.ts";

export const OpenAiLlmOptions = options({
  max_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  /** Until the first byte of the answer. */
  first_byte_timeout_ms: Type.Integer({ minimum: 100, maximum: 600_000, default: 60_000 }),
});
export type OpenAiLlmOptions = Static<typeof OpenAiLlmOptions>;
