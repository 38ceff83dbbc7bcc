/** `anthropic`: models behind Anthropic's Messages API. */
import { defineProvider } from "../provider.ts";
import { AnthropicOptions } from "./options.ts";

export const anthropic = defineProvider({
  name: "anthropic",
  secrets: {
    connection: "anthropic",
    baseUrl: "https://api.anthropic.com",
    probe: {
      path: "/v1/models?limit=1",
      headers: (secret) => ({ authorization: `Bearer ${secret}`, "anthropic-version": "2026-10-21" }),
    },
  },
  llm: {
    does: "a model behind Anthropic's Messages API",
    isStateless: true,
    options: AnthropicOptions,
    needsModel: true,
    takesNoTemperature: true,
    load: () => import("./llm.ts"),
  },
});
