import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ruleOf, rulesetOf, today } from "#test/kit/tax/calculation_fixture.ts";
import type { Rule } from "../rules/rule.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import { calculate } from "./calculate.ts";
import type { CalculationAnswer } from "./calculation_answer.ts";
import { CalculationProblem, type CalculationRequest } from "./calculation_request.ts";
import { addDays } from "./law/calendar.ts";
import { parseExactJson } from "./numbers/exact_json.ts";
import { Rational, sumOf } from "./numbers/rational.ts";

/** What holds for all laws and stays. A failure prints the seed that repeats it. */
const seasons = { summer: [{ from: "06-01", to: "08-31" }], turn: [{ from: "12-15", to: "01-15" }] };

const money = fc.integer({ min: 1, max: 5000 }).map((cents) => (cents / 100).toFixed(2));
const rate = fc.integer({ min: 1, max: 250 }).map((tenths) => (tenths / 10).toFixed(1));
const persons = fc.option(
  fc.constantFrom<NonNullable<Rule["persons"]>>(
    [{ min_age: 18 }],
    [{ min_age: 18 }, { min_age: 12, max_age: 17, factor: "0.5" }],
    [{ min_age: 12 }, { min_age: 6, max_age: 11, flat: "0.75" }],
  ),
  { nil: undefined },
);
const bands = fc.constantFrom("slab" as const, "marginal" as const).chain((mode) =>
  fc.record({ from: fc.integer({ min: 20, max: 200 }), low: rate, more: rate }).map(({ from, low, more }) => ({
    bands: {
      key: "price_per_room_night" as const,
      mode,
      rows: [
        { from: "0", percent: low },
        { from: String(from), percent: (Number(low) + Number(more)).toFixed(1) },
      ],
    },
  })),
);
const amount = fc.oneof(
  money.map((flat) => ({ flat })),
  rate.map((percent) => ({ percent })),
  fc.integer({ min: 7, max: 40 }).map((d) => ({ fraction: { n: 1, d } })),
  bands,
);
const rounding = (levels: readonly ("person_night" | "room_night" | "night" | "line")[]) =>
  fc.record({
    mode: fc.constantFrom("half_up" as const, "half_even" as const, "down" as const, "up" as const),
    increment: fc.constantFrom("0.01", "0.05", "1"),
    at: fc.constantFrom(...levels),
  });

/** Up to four taxes on each other: a levy by any shape, a seasonal one, a surtax on the first, VAT on all. */
const law = (levels: Parameters<typeof rounding>[0]) =>
  fc
    .record({
      unit: fc.constantFrom("room_night" as const, "person_night" as const),
      amount,
      persons,
      rounding: rounding(levels),
      seasonal: fc.option(money, { nil: undefined }),
      surtax: fc.option(rate, { nil: undefined }),
      surtaxRounding: rounding(levels),
      vat: fc.option(rate, { nil: undefined }),
      vatRounding: rounding(levels),
      isInBase: fc.boolean(),
    })
    .map((one): Rule[] => {
      const vat_treatment = one.isInBase ? "in_base_same_rate" : "outside";
      const shared = { vat_treatment, ...(one.persons && { persons: one.persons }) } as const;
      const rules = [ruleOf("levy", { unit: one.unit, amount: one.amount, rounding: one.rounding, ...shared })];
      if (one.seasonal) {
        const cases = [
          { when: { season: "summer" }, amount: { flat: one.seasonal } },
          { when: { any: [{ season: "turn" }, { weekday: ["sat" as const] }] }, amount: { flat: "0.10" } },
        ];
        rules.push(ruleOf("seasonal", { unit: "person_night", cases, rounding: one.rounding }));
      }
      if (one.surtax) {
        const surtax = { percent_of_tax: { of: ["xx.levy"], percent: one.surtax } };
        rules.push(ruleOf("surtax", { amount: surtax, rounding: one.surtaxRounding, ...shared }));
      }
      if (one.vat) {
        const terms = { unit: "room_night", amount: { percent: one.vat }, rounding: one.vatRounding } as const;
        rules.push(ruleOf("vat", { kind: "vat", ...terms }));
      }
      return rules;
    });

const stay = fc
  .record({
    stay_date: fc.integer({ min: 0, max: 1200 }).map((days) => addDays("2024-01-01", days)),
    nights: fc.integer({ min: 2, max: 12 }),
    nightly_rate: fc.integer({ min: 1, max: 60000 }).map((cents) => (cents / 100).toFixed(2)),
    rooms: fc.integer({ min: 1, max: 3 }),
    guest_ages: fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 5 }),
  })
  .map((one): CalculationRequest => ({ jurisdiction_code: "NL-TST", currency: "EUR", ...one }));

const answer = (request: CalculationRequest, ruleset: Ruleset): CalculationAnswer =>
  calculate(request, ruleset, { today });
const totalOf = (one: CalculationAnswer) => Rational.parse(one.tax_breakdown.total_tax);
const byNight = ["person_night", "room_night", "night"] as const;
const anyLevel = [...byNight, "line"] as const;

describe("all laws and stays", () => {
  it("add up: slices to components, components to kinds, kinds to the total, and that to the price", () => {
    fc.assert(
      fc.property(law(anyLevel), stay, (rules, request) => {
        const { tax_breakdown, totals_by_kind, total_with_tax, total_without_tax } = answer(
          request,
          rulesetOf(rules, seasons),
        );
        const components = sumOf(tax_breakdown.components.map((one) => Rational.parse(one.tax_amount)));
        const kinds = sumOf(Object.values(totals_by_kind).map((text) => Rational.parse(text)));
        assert.equal(components.toText(), Rational.parse(tax_breakdown.total_tax).toText());
        assert.equal(kinds.toText(), components.toText());
        const difference = Rational.parse(total_with_tax).minus(Rational.parse(total_without_tax));
        assert.equal(difference.toText(), components.toText());
      }),
      { numRuns: 200 },
    );
  });

  it("split at any night and added give the same, where nothing looks at the stay as a whole", () => {
    const cut = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(law(byNight), stay, cut, (rules, request, share) => {
        const ruleset = rulesetOf(rules, seasons);
        const nights = 1 + Math.floor(share * (request.nights - 1.001));
        const first = answer({ ...request, nights }, ruleset);
        const rest = { stay_date: addDays(request.stay_date, nights), nights: request.nights - nights };
        const second = answer({ ...request, ...rest }, ruleset);
        const whole = answer(request, ruleset);
        assert.equal(totalOf(first).plus(totalOf(second)).toText(), totalOf(whole).toText());
      }),
      { numRuns: 200 },
    );
  });

  it("never cost less for a night more", () => {
    fc.assert(
      fc.property(law(anyLevel), stay, (rules, request) => {
        const ruleset = rulesetOf(rules, seasons);
        const longer = answer({ ...request, nights: request.nights + 1 }, ruleset);
        assert.ok(totalOf(longer).compare(totalOf(answer(request, ruleset))) >= 0);
      }),
      { numRuns: 200 },
    );
  });

  it("answer the same again, to the letter", () => {
    fc.assert(
      fc.property(law(anyLevel), stay, (rules, request) => {
        const once = answer(request, rulesetOf(rules, seasons));
        assert.deepEqual(answer(structuredClone(request), rulesetOf(structuredClone(rules), seasons)), once);
      }),
      { numRuns: 100 },
    );
  });

  it("take a price with tax in it apart into parts that come to it again", () => {
    const fine = { mode: "half_up", increment: "0.000000001" } as const;
    const linear = law(byNight)
      .map((rules) => rules.filter((rule) => rule.id !== "xx.seasonal").map((rule) => ({ ...rule, rounding: fine })))
      .filter((rules) => !rules.some((rule) => rule.amount?.bands));
    fc.assert(
      fc.property(linear, stay, (rules, request) => {
        const ruleset = rulesetOf(rules);
        const inclusive = { ...request, nightly_rate: 500, price_includes_tax: true };
        fc.pre(!isTooLow(() => answer(inclusive, ruleset)));
        const inside = answer(inclusive, ruleset);
        const nightsAndRooms = Rational.of(request.nights * (request.rooms ?? 1));
        const net = Rational.parse(inside.total_without_tax).over(nightsAndRooms);
        fc.pre(net.compare(Rational.one) > 0);
        const outside = answer({ ...request, nightly_rate: net.toText(9) }, ruleset);
        const difference = totalOf(outside).minus(totalOf(inside));
        // Both are printed in whole cents, and so is the net price between them.
        assert.ok(Math.abs(Number(difference.toText())) <= 0.03, `${difference.toText()} apart`);
      }),
      { numRuns: 100 },
    );
  });
});

describe("a price with tax in it, under a levy on the gross price", () => {
  it("has a VAT whose base is the net price and the levy, and all of them come to what is due", () => {
    fc.assert(
      fc.property(rate, rate, stay, (levyRate, vatRate, request) => {
        const room_night = { unit: "room_night" } as const;
        const levy = { base: { price: "gross" as const }, vat_treatment: "in_base_same_rate" as const };
        const ruleset = rulesetOf([
          ruleOf("vat", { kind: "vat", ...room_night, amount: { percent: vatRate } }),
          ruleOf("levy", { ...room_night, amount: { percent: levyRate }, ...levy }),
        ]);
        const one = answer({ ...request, price_includes_tax: true }, ruleset);
        const of = (id: string) => one.tax_breakdown.components.find(({ rule_id }) => rule_id === id);
        const [base, levied, taxed, net, due] = [
          of("xx.vat")?.taxable_amount,
          of("xx.levy")?.tax_amount,
          of("xx.vat")?.tax_amount,
          one.total_without_tax,
          one.total_with_tax,
        ].map((text) => Rational.parse(text ?? "0")) as [Rational, Rational, Rational, Rational, Rational];
        assert.equal(net.plus(levied).plus(taxed).toText(), due.toText());
        const asked = Rational.parse(request.nightly_rate).times(Rational.of(request.nights * (request.rooms ?? 1)));
        assert.equal(of("xx.levy")?.taxable_amount, asked.toFixed(2));
        // The base is printed in whole cents, as what it is made of.
        const apart = Number(base.minus(net.plus(levied)).toText());
        assert.ok(Math.abs(apart) <= 0.01, `${apart} apart`);
      }),
      { numRuns: 200 },
    );
  });
});

/** A price below the flat taxes that it is said to include has no answer. */
function isTooLow(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch (error) {
    return error instanceof CalculationProblem && error.field === "nightly_rate";
  }
}

describe("exact JSON", () => {
  it("keeps every digit of a number, as a string where a double cannot", () => {
    assert.deepEqual(parseExactJson('{"a":1.005,"b":12345678901234567.891,"c":"0.12345678901234567890","d":1e2}'), {
      a: 1.005,
      b: "12345678901234567.891",
      c: "0.12345678901234567890",
      d: 100,
    });
    const digits = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.bigInt({ min: 0n, max: 10n ** 12n }));
    fc.assert(
      fc.property(digits, ([whole, fraction]) => {
        const text = `${whole}.${fraction}`;
        const [value] = parseExactJson(`[${text}]`) as [string | number];
        assert.equal(Rational.parse(value).compare(Rational.parse(text)), 0);
      }),
    );
  });
});
