/** `openai`: any endpoint that speaks OpenAI's API (OpenAI, vLLM, Ollama, LiteLLM …). */
import { defineProvider } from "../provider.ts";
import { OpenAiLlmOptions } from "./options.ts";

export const openai = defineProvider({
  name: "openai",
  secrets: {
    connection: "openai",
    baseUrl: "https://api.openai.com/v1",
    probe: { path: "/models", headers: (secret) => ({ authorization: `Bearer ${secret}` }) },
  },
  llm: {
    does: "a model behind any endpoint that speaks OpenAI's chat completions",
    options: OpenAiLlmOptions,
    load: () => import("./llm.ts"),
  },
});
