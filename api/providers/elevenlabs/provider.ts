/** `elevenlabs`: speech over a socket with several contexts. */
import { defineProvider } from "../provider.ts";
import { ElevenLabsOptions, modelDefault } from "./options.ts";

export const elevenlabs = defineProvider({
  name: "elevenlabs",
  secrets: {
    connection: "elevenlabs",
    baseUrl: "https://api.elevenlabs.io",
    probe: { path: "/v1/models", headers: (secret) => ({ "xi-api-key": secret }) },
  },
  tts: {
    does: "speech as it is made, a context a clause, 24 kHz; `voice` is the id of a voice, `eleven_flash_v2_5` the default model",
    options: ElevenLabsOptions,
    defaultModel: modelDefault,
    needsVoice: true,
    load: () => import("./tts.ts"),
  },
});
