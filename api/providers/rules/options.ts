/** Options of `rules`. */
import { type Static, Type } from "@sinclair/typebox";
import { faults, options, text, tokens_per_s, toolName } from "../option_schemas.ts";

const slotName = Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 64 });
const pattern = text(500, 1);

const Slot = options({ name: slotName, prompt: text(1000, 1), pattern: Type.Optional(pattern) });
export type Slot = Static<typeof Slot>;

const Rule = options({
  intent: text(64, 1),
  patterns: Type.Array(pattern, { minItems: 1, maxItems: 50 }),
  say: text(4000),
  tool: Type.Optional(toolName),
  slots: Type.Optional(Type.Array(Slot, { maxItems: 20 })),
});
export type Rule = Static<typeof Rule>;

export const RulesOptions = options({
  rules: Type.Array(Rule, { maxItems: 200, default: [] }),
  fallback: Type.String({ maxLength: 4000, default: "I'm sorry, I don't have an answer to that yet." }),
  tokens_per_s,
  ...faults,
});
export type RulesOptions = Static<typeof RulesOptions>;
