/** `flite`: real speech, embedded. */
import { defineProvider } from "../provider.ts";
import { FliteOptions, fliteVoices } from "./options.ts";

export const flite = defineProvider({
  name: "flite",
  tts: {
    does: "real speech, English, 16 kHz",
    ignores: ["model", "language", "temperature"],
    options: FliteOptions,
    voices: fliteVoices,
    load: () => import("./tts.ts"),
  },
});
