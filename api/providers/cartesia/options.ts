/** Options of `cartesia`. */
import { type Static, Type } from "@sinclair/typebox";
import { options } from "../option_schemas.ts";

export const CartesiaOptions = options({
  sample_rate: Type.Integer({ minimum: 8000, maximum: 48_000, default: 24_000 }),
});
export type CartesiaOptions = Static<typeof CartesiaOptions>;

/** What an agent means that names no model. */
export const modelDefault = "sonic-3";
