import type { LanguageModel, StageRequest } from "../provider.ts";
import { countTokens, wordsOf } from "../reply_text.ts";
import { passFaults, waitFor } from "../waiting.ts";
import { defaultRules } from "./default_rules.ts";
import type { RulesOptions } from "./options.ts";
import { answerTo, type DialogState, endCallTool } from "./rules_answer.ts";

/** Answers by rules, with the state of the dialog between turns. */
export function open({ options, waits }: StageRequest<RulesOptions>): LanguageModel {
  const tokenMs = options.tokens_per_s > 0 ? 1000 / options.tokens_per_s : 0;
  const book = { rules: options.rules.length > 0 ? options.rules : defaultRules, fallback: options.fallback };

  // A turn may be asked for again (its text grew, or a tool answered): it starts from where it started before.
  let turnIndex = -1;
  let before: DialogState = {};
  let after: DialogState = {};

  return {
    async *reply(request, signal) {
      if (!(await passFaults("llm", options, request.turnIndex, signal))) return;
      const isToolResult = request.history.at(-1)?.role === "tool";
      if (!isToolResult) {
        before = request.turnIndex === turnIndex ? before : after;
        turnIndex = request.turnIndex;
      }
      const answer = answerTo(book, isToolResult ? after : before, request);
      after = answer.state;

      const call = answer.tool && {
        kind: "tool_call" as const,
        id: `call_${request.turnIndex + 1}_${answer.tool.name}`,
        name: answer.tool.name,
        arguments: answer.tool.arguments,
      };
      if (call && call.name !== endCallTool) yield call;
      for (const word of wordsOf(answer.say)) {
        if (!(await waitFor(waits, tokenMs, signal))) return;
        yield { kind: "text", text: word };
      }
      if (call?.name === endCallTool) yield call;
      const prompt = countTokens(request.history.at(-1)?.text ?? "");
      yield { kind: "usage", prompt, completion: countTokens(answer.say), cached: 0 };
    },
    close() {},
  };
}
