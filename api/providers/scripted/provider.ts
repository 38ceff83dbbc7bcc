/** `scripted`: every stage does what its options say, turn by turn. For tests, demonstrations and the load tool. */
import { defineProvider } from "../provider.ts";
import { ScriptedLlmOptions, ScriptedSttOptions, ScriptedTtsOptions } from "./options.ts";

export const scripted = defineProvider({
  name: "scripted",
  stt: {
    does: "the n-th end of speech gives the n-th transcript, the last one repeats; a partial grows by a word for every 300 ms of speech",
    ignores: ["model", "voice", "temperature"],
    options: ScriptedSttOptions,
    load: () => import("./stt.ts"),
  },
  llm: {
    does: "the n-th user turn gets the n-th reply, the last one repeats; a listed tool call runs first",
    isStateless: true,
    ignores: ["instructions", "model", "voice", "language", "temperature"],
    options: ScriptedLlmOptions,
    load: () => import("./llm.ts"),
  },
  tts: {
    does: "a sine at -20 dBFS (a full-scale sine is 0 dBFS), 16 kHz, as long as the text says",
    ignores: ["model", "voice", "language", "temperature"],
    options: ScriptedTtsOptions,
    load: () => import("./tts.ts"),
  },
});
