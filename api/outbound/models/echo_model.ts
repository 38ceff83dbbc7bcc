/** `echo`: says what the caller said, with the caller's own audio where there is some. */
import { completeOptions, EchoOptions } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import type { LanguageModel } from "./language_model.ts";
import { countTokens } from "./reply_text.ts";
import { passFaults, realWaits, type WaitDeps, waitFor } from "./waiting.ts";

/** @throws Error when the options do not fit `EchoOptions` */
export function createEchoModel(settings: ModelSettings, deps: WaitDeps = realWaits): LanguageModel {
  const options = completeOptions(EchoOptions, settings.options);
  return {
    async *reply(request, signal) {
      if (!(await passFaults("llm", options, request.turnIndex, signal))) return;
      if (!(await waitFor(deps, options.delay_ms, signal))) return;
      const heard = request.history.findLast((item) => item.role === "user");
      if (!heard) return;
      if (heard.audio) yield { kind: "audio", audio: heard.audio, text: heard.text || "(speech)" };
      else if (heard.text) yield { kind: "text", text: heard.text };
      const tokens = countTokens(heard.text);
      yield { kind: "usage", prompt: tokens, completion: tokens, cached: 0 };
    },
    close() {},
  };
}
