import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ruleOf, rulesetOf, today } from "#test/kit/tax/calculation_fixture.ts";
import { calculateWith } from "../calculator/calculate.ts";
import type { CalculationRequest } from "../calculator/calculation_request.ts";
import { Rational } from "../calculator/numbers/rational.ts";
import type { Rule } from "../rules/rule.ts";
import type { PlaceRules } from "../rules/ruleset.ts";
import { afterRefund, RefundProblem } from "./refund_terms.ts";

const cent = Rational.of(1, 100);
const placeOf = (rules: readonly Rule[]) => rulesetOf(rules).rulesIn("NL-TST") as PlaceRules;

describe("a refund of an amount", () => {
  it("leaves the highest price that with its tax comes to no more than what is left", () => {
    const rows = [
      { from: "0", percent: "3" },
      { from: "70", percent: "11" },
    ];
    const law = fc.record({
      percent: fc.integer({ min: 0, max: 300 }),
      head: fc.integer({ min: 0, max: 500 }),
      jumps: fc.boolean(),
    });
    const stay = fc.record({
      nights: fc.integer({ min: 1, max: 5 }),
      rooms: fc.integer({ min: 1, max: 3 }),
      rate: fc.integer({ min: 100, max: 30_000 }),
      refunded: fc.integer({ min: 1, max: 50_000 }),
    });
    fc.assert(
      fc.property(law, stay, ({ percent, head, jumps }, { nights, rooms, rate, refunded }) => {
        const place = placeOf([
          ruleOf("vat", { kind: "vat", unit: "room_night", amount: { percent: (percent / 10).toFixed(1) } }),
          ruleOf("levy", { unit: "person_night", amount: { flat: (head / 100).toFixed(2) } }),
          ...(jumps
            ? [
                ruleOf("tier", {
                  unit: "room_night",
                  amount: { bands: { key: "price_per_room_night", mode: "slab", rows } },
                }),
              ]
            : []),
        ]);
        const calculate = (request: CalculationRequest) => calculateWith(place, request, today);
        const request: CalculationRequest = {
          stay_date: "2026-06-10",
          nights,
          rooms,
          nightly_rate: (rate / 100).toFixed(2),
          currency: "EUR",
        };
        const answer = calculate(request);
        const left = Rational.parse(answer.total_with_tax).minus(Rational.of(refunded, 100));
        const refund = () => afterRefund({ request, answer }, { amount: (refunded / 100).toFixed(2) }, calculate);
        const due = Rational.parse(calculate({ ...request, nightly_rate: "0" }).total_with_tax);
        if (left.isZero) return assert.equal(refund().state, "refunded");
        if (left.compare(due) < 0) return assert.throws(refund, RefundProblem);
        const { state, answer: after } = refund();
        assert.equal(state, "partially_refunded");
        assert.ok(Rational.parse(after.total_with_tax).compare(left) <= 0);
        const price = Rational.parse(after.total_without_tax);
        const perNight = price.plus(cent).over(Rational.of(nights * rooms));
        const dearer = calculate({ ...request, nightly_rate: perNight.toText(18) });
        assert.ok(
          Rational.parse(dearer.total_with_tax).compare(left) > 0,
          `${dearer.total_with_tax} fits into ${left.toText()}`,
        );
      }),
      { numRuns: 150 },
    );
  });

  it("takes the parts of a price that are no room down with it", () => {
    const place = placeOf([
      ruleOf("levy", { unit: "room_night", amount: { percent: "10" }, base: { includes: ["room"] } }),
    ]);
    const calculate = (request: CalculationRequest) => calculateWith(place, request, today);
    const request: CalculationRequest = {
      stay_date: "2026-06-10",
      nights: 1,
      nightly_rate: 100,
      currency: "EUR",
      included_amounts: { breakfast: 20, cleaning: true },
    };
    const { request: left, answer } = afterRefund(
      { request, answer: calculate(request) },
      { amount: "54.00" },
      calculate,
    );
    assert.deepEqual(left.included_amounts, { breakfast: "10", cleaning: true });
    assert.deepEqual([answer.total_without_tax, answer.tax_breakdown.total_tax], ["50.00", "4.00"]);
  });
});
