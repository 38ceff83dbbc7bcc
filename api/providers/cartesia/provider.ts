/** `cartesia`: speech over a socket, by Sonic. */
import { defineProvider } from "../provider.ts";
import { CartesiaOptions, modelDefault } from "./options.ts";

export const cartesia = defineProvider({
  name: "cartesia",
  secrets: {
    connection: "cartesia",
    baseUrl: "https://api.cartesia.ai",
    probe: {
      path: "/voices?limit=1",
      headers: (secret) => ({ authorization: `Bearer ${secret}`, "cartesia-version": "2026-08-14" }),
    },
  },
  tts: {
    does: "speech as it is made, a context a clause; `voice` is the id of a voice, `sonic-3` the default model",
    options: CartesiaOptions,
    defaultModel: modelDefault,
    needsVoice: true,
    load: () => import("./tts.ts"),
  },
});
