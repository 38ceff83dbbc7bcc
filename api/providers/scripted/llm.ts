import type { LanguageModel, StageRequest } from "../provider.ts";
import { countTokens, wordsOf } from "../reply_text.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { ScriptedLlmOptions } from "./options.ts";

/** The n-th user turn gets the n-th reply, the last one repeats; a listed tool call runs first. */
export function open({ options, waits }: StageRequest<ScriptedLlmOptions>): LanguageModel {
  const tokenMs = options.tokens_per_s > 0 ? 1000 / options.tokens_per_s : 0;
  return {
    async *reply(request, signal) {
      if (!(await passFaults("llm", options, request.turnIndex, signal))) return;
      if (!(await waitFor(waits, options.delay_ms, signal))) return;
      const asked = request.history.at(-1);
      const prompt = countTokens(asked?.text ?? "");
      const calls = options.tool_calls.filter((call) => call.turn === request.turnIndex + 1);
      if (calls.length > 0 && asked?.role !== "tool") {
        for (const [i, call] of calls.entries()) {
          yield {
            kind: "tool_call",
            id: `call_${call.turn}_${i + 1}`,
            name: call.name,
            arguments: call.arguments ?? {},
          };
        }
        yield { kind: "usage", prompt, completion: calls.length, cached: 0 };
        return;
      }
      const reply = options.replies[Math.min(request.turnIndex, options.replies.length - 1)] ?? "";
      if (tokenMs === 0) {
        if (reply) yield { kind: "text", text: reply };
      } else {
        for (const word of wordsOf(reply)) {
          if (!(await waitFor(waits, tokenMs, signal))) return;
          yield { kind: "text", text: word };
        }
      }
      yield { kind: "usage", prompt, completion: countTokens(reply), cached: 0 };
    },
    close() {},
  };
}
