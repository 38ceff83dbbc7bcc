import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { calculate } from "#tax/calculator/calculate.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { Rational, sumOf } from "#tax/calculator/numbers/rational.ts";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { readPublicCases } from "#test/kit/tax/public_tax_cases.ts";

const today = "2026-11-21";
const ruleset = loadRuleset();
const cents = (text: string) => Rational.parse(text).toText();

describe("the published examples of the rules files", () => {
  it("exist", () => assert.ok(ruleset.examples.length >= 90));

  for (const example of ruleset.examples) {
    it(`${example.file}: ${example.name}`, () => {
      const answer = calculate(example.request as CalculationRequest, ruleset, { today });
      for (const [kind, expected] of Object.entries(example.expected)) {
        assert.equal(cents(answer.totals_by_kind[kind] ?? "0"), cents(expected), kind);
      }
      for (const [id, expected] of Object.entries(example.expected_rules ?? {})) {
        const own = answer.tax_breakdown.components.filter((component) => component.rule_id === id);
        assert.equal(sumOf(own.map((one) => Rational.parse(one.tax_amount))).toText(), cents(expected), id);
      }
    });
  }
});

/** Cases of medium confidence where we answer otherwise, what we answer, and why. */
const known: Readonly<Record<string, string>> = {
  // The source rounds the sum of all percentages once; each tax is rounded by itself here.
  "US-NYC-1": "14.72",
};

describe("the published cases beside the repository", () => {
  const cases = readPublicCases();
  const skip = cases ? false : "../shared/tax-cases/public.json is not there";
  it("are many", { skip }, () => assert.ok((cases ?? []).length > 50));

  it("differ from us in none of high confidence", { skip }, () => {
    const high = (cases ?? []).filter((one) => one.confidence === "high");
    assert.deepEqual(
      high.filter((one) => known[one.id]),
      [],
    );
  });

  for (const one of cases ?? []) {
    it(`${one.id}, ${one.jurisdiction} (${one.confidence})`, () => {
      const answer = calculate(one.request as CalculationRequest, ruleset, { today });
      const amounts = one.kinds.map((kind) => Rational.parse(answer.totals_by_kind[kind] ?? "0"));
      assert.equal(sumOf(amounts).toText(), cents(known[one.id] ?? one.expectedTax));
    });
  }
});
