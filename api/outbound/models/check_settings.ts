/** Checks the settings of a stage as far as they can be checked without a call: schema first, patterns after. */
import {
  type CheckedSettings,
  checkProviderOptions,
  type ModelStage,
  type Rule,
  type SettingProblem,
} from "#contracts/provider_options.ts";
import { checkRulePatterns } from "./rule_patterns.ts";

/** Problems by their path below `config`, for example `llm.options.rules.0.patterns.1`; empty when all is well. Pure. */
export function checkModelSettings(stage: ModelStage, settings: CheckedSettings): SettingProblem[] {
  const problems = checkProviderOptions(stage, settings);
  if (problems.length > 0 || stage !== "llm" || (settings.provider ?? "rules") !== "rules") return problems;
  return checkRulePatterns((settings.options?.rules ?? []) as Rule[]);
}
