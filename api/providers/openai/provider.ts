/** `openai`: any endpoint that speaks OpenAI's API (OpenAI, vLLM, Ollama, LiteLLM …). */
import { defineProvider } from "../provider.ts";
import { OpenAiLlmOptions, OpenAiSttOptions, OpenAiTtsOptions, sttModelDefault, ttsModelDefault } from "./options.ts";

export const openai = defineProvider({
  name: "openai",
  secrets: {
    connection: "openai",
    baseUrl: "https://api.openai.com/v1",
    probe: { path: "/models", headers: (secret) => ({ authorization: `Bearer ${secret}` }) },
  },
  stt: {
    does: "transcribes each utterance behind any endpoint that speaks OpenAI's API, when it is over",
    options: OpenAiSttOptions,
    defaultModel: sttModelDefault,
    load: () => import("./stt.ts"),
  },
  llm: {
    does: "a model behind any endpoint that speaks OpenAI's chat completions",
    isStateless: true,
    options: OpenAiLlmOptions,
    needsModel: true,
    load: () => import("./llm.ts"),
  },
  tts: {
    does: "speech behind any endpoint that speaks OpenAI's API, a request a clause, 24 kHz",
    options: OpenAiTtsOptions,
    defaultModel: ttsModelDefault,
    load: () => import("./tts.ts"),
  },
});
