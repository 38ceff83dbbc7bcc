/** Options of `elevenlabs`. */
import { type Static, Type } from "@sinclair/typebox";
import { options } from "../option_schemas.ts";

const share = () => Type.Optional(Type.Number({ minimum: 0, maximum: 1 }));

/** `voice_settings` of the vendor; what is not given is as the voice has it. */
export const ElevenLabsOptions = options({
  stability: share(),
  similarity_boost: share(),
  style: share(),
  speed: Type.Optional(Type.Number({ minimum: 0.7, maximum: 1.2 })),
});
export type ElevenLabsOptions = Static<typeof ElevenLabsOptions>;

/** What an agent means that names no model. */
export const modelDefault = "eleven_flash_v2_5";
