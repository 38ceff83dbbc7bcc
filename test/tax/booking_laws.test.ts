import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { calculateWith } from "#tax/calculator/calculate.ts";
import { Rational, sumOf } from "#tax/calculator/numbers/rational.ts";
import type { Rule } from "#tax/rules/rule.ts";
import { type BookingDesk, openBookingDesk } from "#test/kit/tax/booking_desk.ts";
import { ruleOf, rulesetOf } from "#test/kit/tax/calculation_fixture.ts";

/** What holds for all bookings, whatever is done to them. A failure prints the seed that repeats it. */
const cents = (max: number) => fc.integer({ min: 1, max: max * 100 }).map((count) => (count / 100).toFixed(2));

const levy = fc
  .record({
    amount: fc.oneof(
      cents(9).map((flat) => ({ flat })),
      fc.integer({ min: 1, max: 200 }).map((tenths) => ({ percent: (tenths / 10).toFixed(1) })),
      cents(9).map((flat) => ({
        bands: {
          key: "price_per_room_night" as const,
          mode: "slab" as const,
          rows: [
            { from: "0", flat: "0.50" },
            { from: "80", flat },
          ],
        },
      })),
    ),
    unit: fc.constantFrom("room_night" as const, "person_night" as const, "stay" as const),
    nights: fc.option(fc.record({ max: fc.integer({ min: 1, max: 7 }) }), { nil: undefined }),
    cap: fc.option(
      cents(40).map((amount) => ({ per: "stay" as const, amount })),
      { nil: undefined },
    ),
    long_stay: fc.option(fc.constant({ nights: 9, effect: "all_nights" as const }), { nil: undefined }),
  })
  .map(({ nights, cap, long_stay, ...terms }) => ({
    ...terms,
    ...(terms.unit !== "stay" && nights && { nights }),
    ...(cap && { cap }),
    ...(long_stay && { long_stay }),
  }));
const law = fc
  .tuple(levy, levy)
  .map(([one, other]): Rule[] => [
    ruleOf("levy", one),
    ruleOf("other", other),
    ruleOf("surtax", { amount: { percent_of_tax: { of: ["xx.levy"], percent: "15" } } }),
    ruleOf("vat", { kind: "vat", unit: "room_night", amount: { percent: "7" }, base: { includes_tax: ["xx.other"] } }),
  ]);
const stay = fc.record({
  nights: fc.integer({ min: 1, max: 12 }),
  nightly_rate: cents(300),
  number_of_guests: fc.integer({ min: 1, max: 4 }),
  rooms: fc.integer({ min: 1, max: 3 }),
  price_includes_tax: fc.boolean(),
});
const step = fc.oneof(
  fc
    .record(
      {
        nights: fc.integer({ min: 1, max: 12 }),
        nightly_rate: cents(300),
        number_of_guests: fc.integer({ min: 1, max: 4 }),
        rooms: fc.integer({ min: 1, max: 3 }),
      },
      { requiredKeys: ["nights"] },
    )
    .map((body) => ({ action: "adjust" as const, body })),
  fc.integer({ min: 1, max: 4 }).map((nights) => ({ action: "refund" as const, body: { nights } })),
  cents(200).map((amount) => ({ action: "refund" as const, body: { amount } })),
  fc.constantFrom("refund" as const, "void" as const).map((action) => ({ action, body: {} })),
);

describe("all bookings", () => {
  let desk: BookingDesk;
  before(async () => {
    desk = await openBookingDesk([]);
  });
  after(() => desk.close());

  interface Line {
    rule_id: string;
    tax_amount: string;
  }
  const byRule = (lines: readonly Line[]) => {
    const rules = [...new Set(lines.map((line) => line.rule_id))].sort();
    const sum = (rule: string) =>
      sumOf(lines.filter((line) => line.rule_id === rule).map((line) => Rational.parse(line.tax_amount)));
    return Object.fromEntries(
      rules.map((rule) => [rule, sum(rule).toFixed(2)]).filter(([, amount]) => amount !== "0.00"),
    );
  };

  it("have had taxes added and given back that sum up, by component, to what stands in them and in the ledger", async () => {
    await fc.assert(
      fc.asyncProperty(law, stay, fc.array(step, { maxLength: 8 }), async (rules, calculation, steps) => {
        desk.enact(rules);
        const booked = await desk.call("POST", "/v1/bookings", {
          calculation: { jurisdiction_code: "NL-TST", stay_date: "2026-06-10", currency: "EUR", ...calculation },
        });
        // A price may be too low for the taxes in it.
        fc.pre(booked.status === 201);
        const { id } = booked.body;
        const deltas = [];
        for (const { action, body } of steps) {
          const answer = await desk.call("POST", `/v1/bookings/${id}/${action}`, body);
          if (answer.status === 200) deltas.push(answer.body.tax_delta);
          else assert.ok([400, 409, 422].includes(answer.status), JSON.stringify(answer.body));
        }
        const booking = (await desk.call("GET", `/v1/bookings/${id}`)).body;
        const kept = booking.changes.map((change: { tax_delta: unknown }) => change.tax_delta);
        assert.deepEqual(kept.slice(1), deltas);
        for (const delta of kept) {
          const parts = delta.components.map((line: Line) => Rational.parse(line.tax_amount));
          assert.equal(sumOf(parts).toFixed(2), delta.total_tax);
        }
        const total = sumOf(kept.map((delta: { total_tax: string }) => Rational.parse(delta.total_tax)));
        assert.equal(total.toFixed(2), booking.total_tax);
        const standing = byRule(booking.result.tax_breakdown.components);
        assert.deepEqual(byRule(kept.flatMap((delta: { components: Line[] }) => delta.components)), standing);
        const ledger = await desk.sql<Line[]>`
          select rule_id, tax_amount from tax_entries where booking_id = ${id} order by change_id`;
        assert.deepEqual(byRule(ledger), standing);
        if (booking.state === "refunded" || booking.state === "voided") assert.equal(booking.total_with_tax, "0.00");
        else {
          const place = rulesetOf(rules).rulesIn("NL-TST");
          assert.ok(place);
          const fresh = calculateWith(place, booking.calculation, "2026-06-01");
          assert.deepEqual(booking.result, JSON.parse(JSON.stringify(fresh)));
        }
      }),
      { numRuns: 40 },
    );
  });
});
