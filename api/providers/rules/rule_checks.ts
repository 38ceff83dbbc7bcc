/** What the schema of `rules` cannot say: patterns in all, slots that are there twice, and what RE2 makes of a pattern. */
import type { SettingProblem } from "../provider.ts";
import type { Rule, RulesOptions } from "./options.ts";
import { checkRulePatterns } from "./rule_patterns.ts";

/** Patterns of one agent, over all rules and slots: what a turn may cost stays bounded. */
export const rulePatternsMax = 500;

/** Problems by their path below `options`. Pure. */
export function checkRules({ rules = [] }: Partial<RulesOptions>): SettingProblem[] {
  const patterns = rules.reduce(
    (sum, rule) => sum + rule.patterns.length + (rule.slots ?? []).filter((slot) => slot.pattern !== undefined).length,
    0,
  );
  if (patterns > rulePatternsMax) {
    return [{ path: "rules", message: `Expected at most ${rulePatternsMax} patterns in all, got ${patterns}` }];
  }
  const problems = rules.flatMap(slotNamedTwice);
  return problems.length > 0 ? problems : checkRulePatterns(rules);
}

function slotNamedTwice({ slots = [] }: Rule, index: number): SettingProblem[] {
  const names = slots.map(({ name }) => name);
  const twice = names.findIndex((name, at) => names.indexOf(name) !== at);
  if (twice < 0) return [];
  return [{ path: `rules.${index}.slots.${twice}.name`, message: `Slot ${names[twice]} is there twice` }];
}
