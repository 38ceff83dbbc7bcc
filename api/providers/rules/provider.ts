/** `rules`: the embedded agent. Intents by patterns, slots over several turns, tool calls, templates; no vendor. */
import { defineProvider } from "../provider.ts";
import { RulesOptions } from "./options.ts";
import { checkRules } from "./rule_checks.ts";

export const rules = defineProvider({
  name: "rules",
  llm: {
    does: "the embedded agent: matches what was typed or heard, fills slots, calls tools, answers with a template",
    ignores: ["instructions", "model", "voice", "language", "temperature"],
    options: RulesOptions,
    check: checkRules,
    load: () => import("./llm.ts"),
  },
});
