/** `echo`: with all three stages set to it, the caller's own last utterance comes back as it was. */
import { defineProvider } from "../provider.ts";
import { EchoOptions } from "./options.ts";

export const echo = defineProvider({
  name: "echo",
  stt: {
    does: "gives `(1.2 s of speech)`, so that the turn is not an empty one",
    ignores: ["model", "voice", "language", "temperature"],
    options: EchoOptions,
    load: () => import("./stt.ts"),
  },
  llm: {
    does: "says what the caller said, in the caller's own audio where there is some",
    ignores: ["instructions", "model", "voice", "language", "temperature"],
    options: EchoOptions,
    load: () => import("./llm.ts"),
  },
  tts: {
    does: "says the audio that it is given, sample for sample; text alone has no sound",
    ignores: ["model", "voice", "language", "temperature"],
    options: EchoOptions,
    load: () => import("./tts.ts"),
  },
});
