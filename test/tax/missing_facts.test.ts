import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { calculate } from "#tax/calculator/calculate.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { Rational } from "#tax/calculator/numbers/rational.ts";
import { channels } from "#tax/rules/rule.ts";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { randomStay } from "#test/kit/tax/random_stay.ts";

const today = "2026-11-22";
const ruleset = loadRuleset();
/** Places that tax by facts of guests: the others have nothing to ask. */
const codes = [...new Set([...ruleset.rules.values()].map(({ jurisdiction }) => jurisdiction))].sort();

/** Every value that a request may give for a fact of few values. */
const values: Readonly<Record<string, readonly unknown[]>> = {
  guest_is_resident: [true, false],
  channel: channels,
};

describe("what a missing fact would change", () => {
  it("is what the same stay comes to with each value of the fact, in places of all kinds", () => {
    let compared = 0;
    for (let index = 0; index < 1500; index++) {
      const { guest_is_resident: _, channel: _channel, ...stay } = randomStay(codes, ruleset, index);
      const request: CalculationRequest = { star_rating: 4, property_rooms: 50, ...stay };
      let answer: ReturnType<typeof calculate>;
      try {
        answer = calculate(request, ruleset, { today });
      } catch {
        continue;
      }
      for (const [field, all] of Object.entries(values)) {
        const totals = all.map((value) => exactTax({ ...request, [field]: value }));
        const told = answer.missing_inputs.find((one) => one.field === field);
        const differs = totals.some((total) => total.compare(totals[0] as Rational) !== 0);
        assert.equal(told !== undefined, differs, `${field}: ${JSON.stringify(request)}`);
        if (!told) continue;
        compared++;
        const shown = [told.min_tax, told.max_tax].map((amount) => Rational.parse(amount).toText());
        const sorted = totals.sort((a, b) => a.compare(b));
        const expected = [sorted[0], sorted.at(-1)].map((total) => (total as Rational).toText());
        assert.deepEqual(shown, expected, `${field}: ${JSON.stringify(request)}`);
      }
    }
    assert.ok(compared > 50, `${compared} compared`);
  });
});

function exactTax(request: CalculationRequest): Rational {
  return Rational.parse(calculate(request, ruleset, { today }).tax_breakdown.total_tax);
}
