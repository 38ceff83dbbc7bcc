/** Laws made up for tests: a country with one city, and what is owed there. */

import { calculate } from "#tax/calculator/calculate.ts";
import type { CalculationAnswer } from "#tax/calculator/calculation_answer.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { assemblePlaces } from "#tax/places/places.ts";
import type { Rule, RuleFile, RuleVersion, Source } from "#tax/rules/rule.ts";
import { assembleRuleset, type Ruleset } from "#tax/rules/ruleset.ts";
import type { AtlasFile } from "#tax/rules/slot.ts";

type Terms = Partial<Omit<Rule, "versions">> & Partial<Omit<RuleVersion, "version">>;

/** A rule `xx.<id>` in the city `NL-TST`, in euro, in force from 2020, with these terms. */
export function ruleOf(id: string, { effective, quotes, ...terms }: Terms): Rule {
  const { source, announced_on, on_lapse, review_by, ...rest } = terms;
  return {
    id: `xx.${id}`,
    jurisdiction: "NL-TST",
    authority: "Test",
    name: id,
    kind: "accommodation",
    currency: "EUR",
    ...rest,
    versions: [
      {
        version: 1,
        effective: effective ?? { from: "2020-01-01" },
        source: source ?? "law",
        ...(source === undefined && { quotes: quotes ?? [{ source: "law", quote: "as printed" }] }),
        ...(announced_on && { announced_on }),
        ...(effective?.to && { on_lapse: on_lapse ?? "unknown", review_by: review_by ?? "2027-01-15" }),
      },
    ],
  } as Rule;
}

/** Where a city may tax stays, and nobody else may. */
const cityTax: AtlasFile = {
  about: "Test",
  sources: [],
  countries: [{ country: "NL", slots: [{ level: "city", kind: "accommodation" }] }],
};

/** @param sources beside `law`, by id */
export function rulesetOf(
  rules: readonly Rule[],
  seasons: RuleFile["seasons"] = {},
  sources: Record<string, Partial<Source>> = {},
  atlas: AtlasFile = cityTax,
): Ruleset {
  const places = assemblePlaces([
    { file: "test", content: { about: "Test", jurisdictions: [{ code: "NL-TST", name: "Testburg", type: "city" }] } },
  ]);
  const law = { title: "The law", url: "https://example.com/law", checked_on: "2026-01-01", kind: "official" as const };
  const listed = Object.entries({ law: {}, ...sources }).map(([id, more]) => ({ id, ...law, ...more }));
  const content = { about: "Test", sources: listed, seasons, rules: [...rules] };
  return assembleRuleset(places, [{ file: "test.json", content }], [{ file: "atlas.json", content: atlas }]);
}

export const today = "2026-06-01";

/** Two nights in June at 100 for one guest, unless `request` says otherwise. */
export function answerFor(
  rules: readonly Rule[],
  request: Partial<CalculationRequest> = {},
  seasons: RuleFile["seasons"] = {},
): CalculationAnswer {
  const stay = { jurisdiction_code: "NL-TST", stay_date: "2026-06-10", nights: 2, nightly_rate: 100, currency: "EUR" };
  return calculate({ ...stay, ...request }, rulesetOf(rules, seasons), { today });
}

export function taxFor(...args: Parameters<typeof answerFor>): string {
  return answerFor(...args).tax_breakdown.total_tax;
}
