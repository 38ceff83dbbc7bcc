/** Options of `anthropic`. */
import { type Static, Type } from "@sinclair/typebox";
import { options } from "../option_schemas.ts";

export const AnthropicOptions = options({
  /** The vendor wants a bound for every answer. */
  max_tokens: Type.Integer({ minimum: 1, maximum: 64_000, default: 1024 }),
  /** Until the first byte of the answer. */
  first_byte_timeout_ms: Type.Integer({ minimum: 100, maximum: 600_000, default: 60_000 }),
});
export type AnthropicOptions = Static<typeof AnthropicOptions>;
