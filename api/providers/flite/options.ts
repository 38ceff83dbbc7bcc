/** Options and voices of `flite`. */
import type { Static } from "@sinclair/typebox";
import { faults, options } from "../option_schemas.ts";

export const FliteOptions = options({ ...faults });
export type FliteOptions = Static<typeof FliteOptions>;

export const fliteVoices = ["slt", "kal16", "rms", "awb"] as const;
