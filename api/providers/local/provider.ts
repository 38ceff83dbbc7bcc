/** `local`: a speech server on the operator's own machine that speaks OpenAI's API. */
import { OpenAiSttOptions, OpenAiTtsOptions } from "../openai/options.ts";
import { defineProvider } from "../provider.ts";

export const local = defineProvider({
  name: "local",
  ownServer: true,
  stt: {
    does: "transcribes each utterance at `STT_LOCAL_URL`, any server that speaks OpenAI's API",
    options: OpenAiSttOptions,
    load: () => import("./stt.ts"),
  },
  tts: {
    does: "speech from `TTS_LOCAL_URL`, any server that speaks OpenAI's API, at the rate that its WAV says",
    options: OpenAiTtsOptions,
    load: () => import("./tts.ts"),
  },
});
