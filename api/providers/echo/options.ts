/** Options of `echo`, alike in every stage. */
import type { Static } from "@sinclair/typebox";
import { delay_ms, faults, options } from "../option_schemas.ts";

export const EchoOptions = options({ delay_ms, ...faults });
export type EchoOptions = Static<typeof EchoOptions>;
