import type { LanguageModel, StageRequest } from "../provider.ts";
import { countTokens } from "../reply_text.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { EchoOptions } from "./options.ts";

/** Says what the caller said, with the caller's own audio where there is some. */
export function open({ options, waits }: StageRequest<EchoOptions>): LanguageModel {
  return {
    async *reply(request, signal) {
      if (!(await passFaults("llm", options, request.turnIndex, signal))) return;
      if (!(await waitFor(waits, options.delay_ms, signal))) return;
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
