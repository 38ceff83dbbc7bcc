/** Options of `deepgram`. Those that a wire does not have are refused with the other wire's models. */
import { type Static, Type } from "@sinclair/typebox";
import { options, text } from "../option_schemas.ts";

export const DeepgramOptions = options({
  /** Words that are likely to be said: names, places. */
  keyterms: Type.Optional(Type.Array(text(100, 1), { maxItems: 100 })),
  /** Nova: numbers, dates and sums of money as they are written. */
  smart_format: Type.Optional(Type.Boolean()),
  /** Flux: how sure it must be that a turn is over; the vendor's default is 0.7. */
  eot_threshold: Type.Optional(Type.Number({ minimum: 0.5, maximum: 1 })),
  /** Flux: silence that ends a turn however unsure it is; the vendor's default is 5000. */
  eot_timeout_ms: Type.Optional(Type.Integer({ minimum: 500, maximum: 60_000 })),
});
export type DeepgramOptions = Static<typeof DeepgramOptions>;

/** What an agent means that names no model. */
export const modelDefault = "nova-3";
