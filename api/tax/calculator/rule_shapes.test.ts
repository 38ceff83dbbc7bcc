import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answerFor, ruleOf, rulesetOf, taxFor, today } from "#test/kit/tax/calculation_fixture.ts";
import type { RuleVersion } from "../rules/rule.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import type { PlaceRules } from "../rules/ruleset.ts";
import { calculate, calculateWith } from "./calculate.ts";
import { CalculationProblem } from "./calculation_request.ts";

const room = { unit: "room_night" } as const;
const person = { unit: "person_night" } as const;
const flat = (amount: string) => ({ amount: { flat: amount } });
const percent = (rate: string) => ({ amount: { percent: rate } });
const partsOf = (answer: ReturnType<typeof answerFor>) =>
  Object.fromEntries(answer.tax_breakdown.components.map((one) => [one.rule_id, one.tax_amount]));

describe("every shape of law that the rules can say", () => {
  it("percent of the net price, without the parts that do not count", () => {
    const rule = ruleOf("a", { ...room, ...percent("7.5"), base: { includes: ["room", "cleaning"] } });
    assert.equal(taxFor([rule]), "15.00");
    assert.equal(taxFor([rule], { included_amounts: { breakfast: 20, cleaning: 5 } }), "12.00");
  });

  it("percent of the gross price: with VAT, or the price as asked where that has it", () => {
    const vat = ruleOf("vat", { kind: "vat", ...room, ...percent("10") });
    const rule = ruleOf("a", { ...room, ...percent("5"), base: { price: "gross" } });
    assert.equal(partsOf(answerFor([vat, rule]))["xx.a"], "11.00");
    assert.equal(partsOf(answerFor([vat, rule], { price_includes_tax: true }))["xx.a"], "10.00");
  });

  it("a tax by the stay within the price, spread over nights of which another tax takes its share", () => {
    const rules = [
      ruleOf("stay", { unit: "stay", ...flat("0.02") }),
      ruleOf("first", { ...room, ...percent("19.3"), nights: { max: 1 }, cap: { per: "stay", amount: "0.09" } }),
      ruleOf("surtax", { amount: { percent_of_tax: { of: ["xx.stay"], percent: "15" } } }),
      ruleOf("vat", { kind: "vat", ...room, ...percent("7"), base: { includes_tax: ["xx.first"] } }),
    ];
    const answer = answerFor(rules, { nights: 3, nightly_rate: "0.10", price_includes_tax: true });
    assert.deepEqual([answer.total_with_tax, answer.total_without_tax], ["0.30", "0.25"]);
  });

  it("flat by person and night, room and night, unit, stay", () => {
    const request = { rooms: 2, number_of_guests: 3 };
    assert.equal(taxFor([ruleOf("a", { ...person, ...flat("4.00") })], request), "24.00");
    assert.equal(taxFor([ruleOf("a", { ...room, ...flat("4.00") })], request), "16.00");
    assert.equal(taxFor([ruleOf("a", { unit: "unit_night", ...flat("4.00") })], request), "16.00");
    assert.equal(taxFor([ruleOf("a", { unit: "room_stay", ...flat("4.00") })], request), "8.00");
    assert.equal(taxFor([ruleOf("a", { unit: "person_stay", ...flat("4.00") })], request), "12.00");
    assert.equal(taxFor([ruleOf("a", { unit: "stay", ...flat("4.00") })], request), "4.00");
  });

  it("percent and flat together", () => {
    const rules = [ruleOf("a", { ...room, ...percent("7") }), ruleOf("b", { ...person, ...flat("3.00") })];
    assert.equal(taxFor(rules, { number_of_guests: 2 }), "26.00");
  });

  it("bands by price a person, where a boundary belongs to the upper band", () => {
    const rows = [
      { from: "0", flat: "0" },
      { from: "50", flat: "1" },
      { from: "100", flat: "2" },
    ];
    const rule = (boundary: "at_least" | "above") =>
      ruleOf("a", { ...person, amount: { bands: { key: "price_per_person_night", mode: "slab", boundary, rows } } });
    assert.equal(taxFor([rule("at_least")]), "4.00");
    assert.equal(taxFor([rule("above")]), "2.00");
    assert.equal(taxFor([rule("at_least")], { number_of_guests: 2 }), "4.00");
    assert.equal(taxFor([rule("at_least")], { nightly_rate: "49.99" }), "0.00");
  });

  it("marginal bands: each part of the price by its own rate", () => {
    const rows = [
      { from: "0", percent: "10" },
      { from: "60", percent: "20" },
    ];
    const rule = ruleOf("a", { ...room, amount: { bands: { key: "price_per_room_night", mode: "marginal", rows } } });
    assert.equal(taxFor([rule]), "28.00");
  });

  it("an open end of equal steps", () => {
    const bands = {
      key: "price_per_room_night",
      mode: "slab",
      boundary: "above",
      rows: [{ from: "0", flat: "4" }],
      step: { above: "200", every: "50", add: "1" },
    } as const;
    const rule = ruleOf("a", { ...room, amount: { bands: { ...bands, rows: [...bands.rows] } } });
    const onePrice = (nightly_rate: string) => taxFor([rule], { nights: 1, nightly_rate });
    assert.deepEqual(["200", "200.01", "250", "251"].map(onePrice), ["4.00", "5.00", "5.00", "6.00"]);
  });

  it("bands by the price of the whole stay", () => {
    const rows = [
      { from: "0", flat: "1" },
      { from: "200", flat: "5" },
    ];
    const bands = { key: "stay_price_per_person" as const, mode: "slab" as const, rows };
    const rule = ruleOf("a", { unit: "person_stay", amount: { bands } });
    assert.equal(taxFor([rule]), "5.00");
    assert.equal(taxFor([rule], { nights: 1 }), "1.00");
  });

  it("the declared tariff chooses the rate, the price paid is taxed", () => {
    const rows = [
      { from: "0", percent: "12" },
      { from: "150", percent: "18" },
    ];
    const rule = ruleOf("a", { ...room, amount: { bands: { key: "declared_tariff", mode: "slab", rows } } });
    assert.equal(taxFor([rule], { declared_tariff: 150 }), "36.00");
    assert.equal(taxFor([rule]), "24.00");
  });

  it("a fraction, rounded down for each guest and night", () => {
    const amount = { fraction: { n: 1, d: 15 } };
    const rounding = { mode: "down", at: "person_night" } as const;
    const rule = ruleOf("a", { ...person, amount, rounding });
    assert.equal(taxFor([rule], { nightly_rate: 56, nights: 3, number_of_guests: 2 }), "11.16");
  });

  it("a floor, compared over the stay or for each night, and a threshold", () => {
    const floor = { per: "room_night", amount: "3" } as const;
    const nightly_rates = [
      { date: "2026-06-10", rate: 100 },
      { date: "2026-06-11", rate: 500 },
    ];
    assert.equal(taxFor([ruleOf("a", { unit: "room_stay", ...percent("1"), floor })], { nightly_rates }), "6.00");
    assert.equal(taxFor([ruleOf("a", { ...room, ...percent("1"), floor })], { nightly_rates }), "8.00");
    const threshold = { key: "price_per_room_night", min: "100" } as const;
    const rule = ruleOf("a", { ...room, ...percent("6"), threshold });
    assert.equal(taxFor([rule]), "12.00");
    assert.equal(taxFor([rule], { nightly_rate: "99.99" }), "0.00");
  });

  it("percent of a person's share: shared by all, charged to adults, at most the tariff", () => {
    const rule = ruleOf("a", {
      ...person,
      ...percent("5"),
      base: { divide_by: "guests" },
      persons: [{ min_age: 18 }],
      cap: { per: "person_night", amount: "1.50" },
    });
    const request = { nights: 1, number_of_guests: 4, guest_ages: [40, 40, 9, 7] };
    assert.equal(taxFor([rule], request), "2.50");
    assert.equal(taxFor([rule], { ...request, nightly_rate: 1000 }), "3.00");
  });

  it("a surtax on another tax, rounded by itself", () => {
    const base = ruleOf("base", { ...person, ...flat("2.30") });
    const surtax = ruleOf("sur", {
      amount: { percent_of_tax: { of: ["xx.base"], percent: "15" } },
      rounding: { mode: "half_up", at: "person_night" },
    });
    const answer = answerFor([surtax, base], { nights: 3, number_of_guests: 2 });
    assert.deepEqual(partsOf(answer), { "xx.base": "13.80", "xx.sur": "2.10" });
  });

  it("a tax on a price with another tax in it, and net of one", () => {
    const first = ruleOf("first", { ...room, ...percent("2") });
    const second = ruleOf("second", { ...room, ...percent("7"), base: { includes_tax: ["xx.first"] } });
    assert.equal(partsOf(answerFor([second, first]))["xx.second"], "14.28");
    const net = ruleOf("second", { ...room, ...percent("10"), base: { net_of: ["xx.first"] } });
    assert.equal(partsOf(answerFor([net, first]))["xx.second"], "19.60");
  });

  it("a levy that is part of its own base", () => {
    const rule = ruleOf("a", { ...room, ...percent("7.5"), base: { includes_self: true } });
    assert.equal(taxFor([rule], { nightly_rate: "462.50" }), "75.00");
    assert.equal(taxFor([rule], { nightly_rate: 500, price_includes_tax: true }), "75.00");
  });

  it("one level's tax taken off another's", () => {
    const upper = ruleOf("upper", { ...person, ...flat("2") });
    const town = ruleOf("town", { ...room, ...percent("3"), offset_by: ["xx.upper"] });
    assert.deepEqual(partsOf(answerFor([town, upper])), { "xx.upper": "4.00", "xx.town": "2.00" });
    assert.equal(partsOf(answerFor([town, upper], { nightly_rate: 10 }))["xx.town"], "0.00");
  });

  it("a limit of nights, free first nights, and a rate that falls", () => {
    const rule = (nights: NonNullable<Parameters<typeof ruleOf>[1]["nights"]>) =>
      ruleOf("a", { ...person, ...flat("2"), nights });
    assert.equal(taxFor([rule({ max: 5 })], { nights: 7 }), "10.00");
    assert.equal(taxFor([rule({ skip: 2 })], { nights: 7 }), "10.00");
    assert.equal(taxFor([rule({ bands: [{ from: 3, factor: "0.5" }] })], { nights: 4 }), "6.00");
    const [component] = answerFor([rule({ max: 5 })], { nights: 7 }).tax_breakdown.components;
    assert.deepEqual(component?.exemptions, [{ code: "night_limit", reason: "Only 5 nights are taxed", nights: 2 }]);
    assert.deepEqual(
      component?.slices.map(({ from, to, nights }) => [from, to, nights]),
      [
        ["2026-06-10", "2026-06-15", 5],
        ["2026-06-15", "2026-06-17", 2],
      ],
    );
  });

  it("at most so much a person and stay", () => {
    const cap = { per: "person_stay", amount: "5" } as const;
    const persons = [{ min_age: 18 }, { min_age: 12, factor: "0.5" }];
    const rule = ruleOf("a", { ...person, ...flat("1"), cap, persons });
    assert.equal(taxFor([rule], { nights: 7, number_of_guests: 2 }), "10.00");
    assert.equal(taxFor([rule], { nights: 7, number_of_guests: 2, guest_ages: [40, 12] }), "8.50");
  });

  it("long stays: free altogether, from a night on, given notice, by months", () => {
    const rule = (long_stay: NonNullable<Parameters<typeof ruleOf>[1]["long_stay"]>) =>
      ruleOf("a", { ...room, ...flat("1"), long_stay });
    const taxed = (one: ReturnType<typeof rule>, nights: number) => taxFor([one], { nights });
    assert.equal(taxed(rule({ nights: 30, effect: "all_nights" }), 29), "29.00");
    assert.equal(taxed(rule({ nights: 30, effect: "all_nights" }), 30), "0.00");
    assert.equal(taxed(rule({ nights: 31, effect: "from_day_n" }), 35), "30.00");
    assert.equal(taxed(rule({ nights: 30, effect: "with_notice" }), 30), "0.00");
    assert.equal(taxed(rule({ months: 3, effect: "all_nights" }), 91), "91.00");
    assert.equal(taxed(rule({ months: 3, effect: "all_nights" }), 92), "0.00");
  });

  it("ages that are free, half, or have an amount of their own", () => {
    const persons = [
      { min_age: 18 },
      { min_age: 12, max_age: 17, factor: { n: 1, d: 2 } },
      { min_age: 6, flat: "0.80" },
    ];
    const rule = ruleOf("a", { ...person, ...flat("3"), persons });
    assert.equal(taxFor([rule], { nights: 1, number_of_guests: 4, guest_ages: [30, 17, 11, 5] }), "5.30");
  });

  it("seasons, night by night and over the new year", () => {
    const seasons = { winter: [{ from: "11-01", to: "03-31" }] };
    const cases = [
      { when: { season: "winter" }, ...flat("1") },
      { when: {}, ...flat("3") },
    ];
    const rule = ruleOf("a", { ...person, cases });
    assert.equal(taxFor([rule], { stay_date: "2026-03-31" }, seasons), "4.00");
    assert.equal(taxFor([rule], { stay_date: "2026-12-31" }, seasons), "2.00");
  });

  it("classes: stars with their superior halves, types, number of rooms", () => {
    const cases = [
      { when: { property_type: ["hostel" as const] }, ...flat("1") },
      { when: { stars: [4.5, 5] }, ...flat("5") },
      { when: { stars: [4] }, ...flat("4") },
      { when: { property_rooms: { max: 24 } }, ...flat("2") },
    ];
    const rule = ruleOf("a", { ...person, cases });
    const tax = (request: Parameters<typeof answerFor>[1]) => taxFor([rule], { nights: 1, ...request });
    assert.equal(tax({ star_rating: 4.5 }), "5.00");
    assert.equal(tax({ star_rating: 4 }), "4.00");
    assert.equal(tax({ star_rating: 3, property_rooms: 24 }), "2.00");
    assert.equal(tax({ star_rating: 3, property_rooms: 25 }), "0.00");
    assert.equal(tax({ property_type: "hostel", star_rating: 3 }), "1.00");
  });

  it("residence, nationality, purpose and channel", () => {
    const exemptions = [
      { code: "resident", reason: "Residents are exempt", when: { resident: true } },
      { code: "business", reason: "Business is exempt", when: { purpose: ["business" as const] } },
    ];
    const rule = ruleOf("a", { ...person, ...flat("1"), exemptions, when: { not: { guest_country: ["NL"] } } });
    assert.equal(taxFor([rule]), "2.00");
    assert.equal(taxFor([rule], { guest_is_resident: true }), "0.00");
    const business = answerFor([rule], { purpose: "business" });
    assert.equal(business.rules_applied[0]?.outcome, "exempted");
    assert.equal(business.tax_breakdown.components[0]?.tax_amount, "0.00");
    const dutch = answerFor([rule], { guest_country: "NL" });
    assert.equal(dutch.rules_applied[0]?.outcome, "skipped");
    assert.deepEqual(dutch.tax_breakdown.components, []);
    const platform = ruleOf("b", { ...room, ...percent("7"), collector: "platform", when: { channel: ["platform"] } });
    assert.equal(taxFor([platform], { channel: "platform" }), "14.00");
    assert.equal(taxFor([platform]), "0.00");
  });

  it("deemed deductions: a share, and an amount for a breakfast that is not itemised", () => {
    assert.equal(taxFor([ruleOf("a", { ...room, ...percent("3.2"), base: { deduct: [{ percent: "11" }] } })]), "5.70");
    const deduct = [{ amount: "7", per: "person_night" as const, if_included: "breakfast" as const }];
    const rule = ruleOf("a", { ...room, ...percent("10"), base: { deduct } });
    assert.equal(taxFor([rule], { included_amounts: { breakfast: true } }), "18.60");
    assert.equal(taxFor([rule]), "20.00");
  });

  it("transitions by the day of booking or payment, versions by their anchor", () => {
    const rule = ruleOf("a", { ...room, ...percent("5"), booking_window: { from: "2026-01-01" } });
    assert.equal(taxFor([rule], { booking_date: "2025-12-31" }), "0.00");
    assert.equal(taxFor([rule], { booking_date: "2026-01-01" }), "10.00");
    const paid = ruleOf("a", { ...room, ...percent("5"), payment_window: { to: "2026-01-01" } });
    assert.equal(taxFor([paid], { booking_date: "2025-12-01", payment_date: "2026-01-02" }), "0.00");
    const effective = { from: "2026-06-11" };
    assert.equal(taxFor([ruleOf("a", { ...room, ...percent("5"), effective })]), "5.00");
    assert.equal(taxFor([ruleOf("a", { ...room, ...percent("5"), effective, date_anchor: "checkin" })]), "0.00");
    assert.equal(taxFor([ruleOf("a", { ...room, ...percent("5"), effective, date_anchor: "checkout" })]), "10.00");
  });

  it("VAT on the levies in its base, and on no other", () => {
    const vat = ruleOf("vat", { kind: "vat", ...room, ...percent("20") });
    const inside = ruleOf("in", { ...room, ...percent("5"), vat_treatment: "in_base_same_rate" });
    const outside = ruleOf("out", { ...room, ...percent("5"), vat_treatment: "outside" });
    assert.equal(answerFor([vat, inside, outside]).totals_by_kind.vat, "42.00");
    const own = ruleOf("own", {
      kind: "vat",
      ...room,
      ...percent("10"),
      base: { includes: [], includes_tax: ["xx.out"] },
    });
    assert.equal(partsOf(answerFor([own, outside]))["xx.own"], "1.00");
  });

  it("rounding by law: mode, increment and level", () => {
    const rounded = (rounding: NonNullable<Parameters<typeof ruleOf>[1]["rounding"]>, nightly_rate: string) =>
      taxFor([ruleOf("a", { ...room, ...percent("10"), rounding })], { nightly_rate });
    assert.equal(rounded({ mode: "half_up" }, "0.125"), "0.03");
    assert.equal(rounded({ mode: "half_even" }, "0.125"), "0.02");
    assert.equal(rounded({ mode: "down", increment: "0.05" }, "1.19"), "0.20");
    assert.equal(rounded({ mode: "up", increment: "1" }, "5.01"), "2.00");
    assert.equal(rounded({ mode: "half_up", at: "night" }, "0.14"), "0.02");
    assert.equal(rounded({ mode: "half_up", at: "line" }, "0.14"), "0.03");
  });
});

describe("a calculation", () => {
  it("takes a price with tax in it apart, exactly", () => {
    const vat = ruleOf("vat", { kind: "vat", ...room, ...percent("10") });
    const city = ruleOf("city", { ...room, ...percent("5"), vat_treatment: "in_base_same_rate" });
    const fixed = ruleOf("fixed", { ...person, ...flat("2.00") });
    const answer = answerFor([vat, city, fixed], { nightly_rate: "117.50", price_includes_tax: true });
    assert.deepEqual(partsOf(answer), { "xx.city": "10.00", "xx.fixed": "4.00", "xx.vat": "21.00" });
    assert.equal(answer.total_without_tax, "200.00");
    assert.equal(answer.total_with_tax, "235.00");
    assert.ok(answer.tax_breakdown.components.every((component) => component.inclusive));
  });

  it("leaves a tax on the gross price, and VAT on it, on top of a price that includes tax", () => {
    const vat = ruleOf("vat", { kind: "vat", ...room, ...percent("7") });
    const levy = ruleOf("levy", {
      ...room,
      ...percent("5"),
      base: { price: "gross" },
      vat_treatment: "in_base_same_rate",
    });
    const surtax = ruleOf("sur", { amount: { percent_of_tax: { of: ["xx.levy"], percent: "10" } } });
    const answer = answerFor([vat, levy, surtax], { nights: 1, price_includes_tax: true });
    assert.deepEqual(partsOf(answer), { "xx.levy": "5.00", "xx.sur": "0.50", "xx.vat": "6.89" });
    assert.deepEqual([answer.total_without_tax, answer.total_with_tax], ["93.46", "105.85"]);
    const taxable = answer.tax_breakdown.components.map((one) => [one.rule_id, one.taxable_amount, one.inclusive]);
    assert.deepEqual(taxable, [
      ["xx.levy", "100.00", false],
      ["xx.vat", "98.46", true],
      ["xx.sur", "5.00", false],
    ]);
    const [ofLevy, ofVat] = answer.tax_breakdown.components.map((one) => one.explanation);
    assert.match(ofLevy ?? "", /It stands on top of the price that includes tax\.$/);
    assert.match(ofVat ?? "", /0\.35 EUR of it stand on top of the price that includes tax\.$/);
    const plain = answerFor([vat, levy, surtax], { nights: 1 }).tax_breakdown.components;
    assert.ok(plain.every((one) => !one.explanation.includes("on top") && !one.inclusive));
  });

  it("reckons VAT on the net room and the levy in Cologne, Dresden and Hannover, whose bases add up", () => {
    const ruleset = loadRuleset();
    const stay = { stay_date: "2026-06-10", nights: 1, currency: "EUR", price_includes_tax: true };
    const figures = (jurisdiction_code: string, nightly_rate: number) => {
      const answer = calculate({ ...stay, jurisdiction_code, nightly_rate }, ruleset, { today });
      const { accommodation, vat } = answer.totals_by_kind;
      const base = answer.tax_breakdown.components.find((one) => one.kind === "vat")?.taxable_amount;
      return [answer.total_without_tax, accommodation, base, vat, answer.total_with_tax];
    };
    assert.deepEqual(figures("DE-NW-CGN", 100), ["93.46", "5.00", "98.46", "6.89", "105.35"]);
    assert.deepEqual(figures("DE-SN-DRS", 100), ["93.46", "6.00", "99.46", "6.96", "106.42"]);
    assert.deepEqual(figures("DE-NI-HAJ", 200), ["186.92", "6.00", "192.92", "13.50", "206.42"]);
  });

  it("reads a number's digits, never a float", () => {
    const rule = ruleOf("a", { ...room, ...percent("100"), rounding: { mode: "down" } });
    assert.equal(taxFor([rule], { nights: 1, nightly_rate: "1.005" }), "1.00");
    assert.equal(taxFor([rule], { nights: 1, nightly_rate: "9007199254740.99" }), "9007199254740.99");
  });

  it("explains itself in English: ages, one and many", () => {
    const explained = (terms: Parameters<typeof ruleOf>[1], request: Parameters<typeof answerFor>[1] = {}) =>
      answerFor([ruleOf("a", terms)], { nights: 1, ...request }).tax_breakdown.components[0]?.explanation;
    const family = { number_of_guests: 4, guest_ages: [40, 38, 12, 9] };
    const persons = [{ min_age: 18 }, { min_age: 10, max_age: 17, factor: "0.5" }];
    assert.equal(
      explained({ ...person, ...flat("2"), persons }, family),
      "2 EUR per person and night: 2.00 x 2 persons aged 18 and over + 1.00 x 1 person aged 10 to 17. Total 5.00 EUR. Guests of an age that does not pay (1 guest).",
    );
    assert.match(
      explained({ ...person, ...flat("2"), persons: [{ max_age: 40 }] }) ?? "",
      /2\.00 x 1 person aged up to 40\./,
    );
    assert.match(explained({ ...room, ...percent("5") }) ?? "", /^5 % of 100\.00 EUR: 5\.00 x 1 room\. Total/);
    assert.match(
      explained({ ...room, ...percent("5") }, { rooms: 2, nights: 3 }) ?? "",
      /: 5\.00 x 2 rooms, 3 nights\./,
    );
    assert.match(explained({ unit: "unit_night", ...flat("2") }) ?? "", /2\.00 x 1 unit\./);
    assert.match(explained({ unit: "stay", ...flat("2") }) ?? "", /2\.00 x 1 stay\./);
    const limited = { ...room, ...flat("1") };
    assert.match(
      explained({ ...limited, nights: { max: 1 } }, { nights: 2 }) ?? "",
      /Only 1 night is taxed \(1 night\)\.$/,
    );
    assert.match(
      explained({ ...limited, nights: { skip: 1 } }, { nights: 2 }) ?? "",
      /The first night is free \(1 night\)\.$/,
    );
    const long_stay = { months: 1, effect: "all_nights" } as const;
    assert.match(explained({ ...limited, long_stay }, { nights: 31 }) ?? "", /Stays of at least 1 month are exempt/);
  });

  it("answers the highest amount without stars, and says so", () => {
    const cases = [5, 3].map((stars) => ({ when: { stars: [stars] }, ...flat(`${stars}.00`) }));
    const answer = answerFor([ruleOf("a", { ...person, cases })]);
    assert.equal(answer.tax_breakdown.total_tax, "10.00");
    assert.deepEqual(answer.missing_inputs, [
      { field: "star_rating", assumed: "5", min_tax: "6.00", max_tax: "10.00" },
    ]);
  });

  it("says what children's ages would change", () => {
    const answer = answerFor([ruleOf("a", { ...person, ...flat("1"), persons: [{ min_age: 18 }] })], {
      number_of_guests: 3,
      adults: 2,
    });
    assert.equal(answer.tax_breakdown.total_tax, "6.00");
    assert.deepEqual(answer.missing_inputs, [
      { field: "guest_ages", assumed: "adults", min_tax: "4.00", max_tax: "6.00" },
    ]);
  });

  it("answers the same from rules that were frozen as JSON", () => {
    const request = {
      jurisdiction_code: "ES-CT-BCN",
      stay_date: "2026-03-30",
      nights: 4,
      nightly_rate: 180,
      currency: "EUR",
    };
    const ruleset = loadRuleset();
    const frozen = JSON.parse(JSON.stringify(ruleset.rulesIn("ES-CT-BCN"))) as PlaceRules;
    assert.deepEqual(calculateWith(frozen, request, today), calculate(request, ruleset, { today }));
  });

  it("replays what was known on a day", () => {
    const rule = ruleOf("a", { ...room, ...flat("1"), effective: { from: "2020-01-01", to: "2026-01-01" } });
    const { on_lapse: _, review_by: _day, ...first } = rule.versions[0] as RuleVersion;
    const later = { ...first, version: 2, effective: { from: "2026-01-01" }, amount: { flat: "9" } };
    const rules = [
      { ...rule, versions: [...rule.versions, { ...later, announced_on: "2025-06-01" }] },
    ] as (typeof rule)[];
    assert.equal(taxFor(rules), "18.00");
    assert.equal(taxFor(rules, { as_known_at: "2025-05-31" }), "2.00");
    assert.equal(taxFor(rules, { as_known_at: "2025-06-01" }), "18.00");
  });

  it("replays without what took effect later, unless it was announced or printed before", () => {
    const law = (source: string, effective: object, terms: object = {}) => ({ source, effective, ...terms });
    const rule = ruleOf("a", { ...room, ...flat("1") });
    const versions = [
      law("law", { from: "2020-01-01", to: "2024-01-01" }),
      law("law", { from: "2024-01-01", to: "2026-01-01" }, { amount: { flat: "2" } }),
      law("gazette", { from: "2026-01-01" }, { amount: { flat: "3" } }),
    ].map((one, index) => ({ version: index + 1, ...one }));
    const taxIn = (day: string, printed_on?: string) => {
      const sources = printed_on === undefined ? {} : { gazette: { printed_on } };
      const ruleset = rulesetOf([{ ...rule, versions } as typeof rule], {}, { gazette: {}, ...sources });
      const stay = { jurisdiction_code: "NL-TST", stay_date: "2026-06-10", nights: 1, nightly_rate: 100 };
      return calculate({ ...stay, currency: "EUR", as_known_at: day }, ruleset, { today }).tax_breakdown.total_tax;
    };
    assert.equal(taxIn("2019-12-31"), "0.00");
    assert.deepEqual(
      ["2020-01-01", "2023-12-31"].map((day) => taxIn(day)),
      ["1.00", "1.00"],
    );
    assert.deepEqual(
      ["2024-01-01", "2025-12-31"].map((day) => taxIn(day)),
      ["2.00", "2.00"],
    );
    assert.equal(taxIn("2026-01-01"), "3.00");
    // Of a year or a month that a source was printed in, the last day is sure.
    const printed = ["2023-07-14", "2023-07", "2023", "2027"].map((on) =>
      ["2023-07-13", "2023-07-14", "2023-08-01", "2023-12-31"].map((day) => taxIn(day, on)),
    );
    assert.deepEqual(printed, [
      ["1.00", "3.00", "3.00", "3.00"],
      ["1.00", "1.00", "3.00", "3.00"],
      ["1.00", "1.00", "1.00", "3.00"],
      ["1.00", "1.00", "1.00", "1.00"],
    ]);
  });

  it("replays what of real places was known then: nothing in 1990", () => {
    const ruleset = loadRuleset();
    const answer = (jurisdiction_code: string, currency: string, request: { stay_date: string; as_known_at: string }) =>
      calculate({ jurisdiction_code, nights: 3, nightly_rate: 150, currency, star_rating: 4, ...request }, ruleset, {
        today,
      });
    const rome = (as_known_at: string) => answer("IT-RM-ROM", "EUR", { stay_date: "2024-05-10", as_known_at });
    const { status, as_of, notes } = rome("1990-01-01").coverage;
    assert.deepEqual([status, as_of, notes.length], ["none_known", "1990-01-01", 2]);
    assert.match(
      notes[1] ?? "",
      /accommodation tax in Rome \(IT-RM-ROM\) is unknown: Not known on the day of the replay/,
    );
    assert.equal(rome("1990-01-01").tax_breakdown.total_tax, "0.00");
    assert.ok(rome("1990-01-01").rules_applied.every(({ outcome }) => outcome === "skipped"));
    assert.equal(rome("2023-01-01").totals_by_kind.accommodation, "18.00");
    assert.equal(rome("2024-01-01").totals_by_kind.accommodation, "22.50");
    const edinburgh = (as_known_at: string) =>
      answer("GB-EDH", "GBP", { stay_date: "2026-08-10", as_known_at }).totals_by_kind.accommodation;
    assert.equal(edinburgh("2020-01-01"), "0.00");
    assert.equal(edinburgh("2026-08-01"), "22.50");
  });

  it("converts a tax of another currency by the rate that the request gives, and refuses without one", () => {
    const rule = ruleOf("a", { ...person, ...flat("10"), currency: "USD" });
    const isMismatch = (error: unknown) => error instanceof CalculationProblem && error.kind === "currency_mismatch";
    assert.throws(() => taxFor([rule]), isMismatch);
    assert.equal(taxFor([rule], { fx: { rate: "0.9", source: "ECB", date: "2026-06-01" } }), "18.00");
    assert.equal(taxFor([ruleOf("b", { ...room, ...percent("5"), currency: "USD" })]), "10.00");
  });

  it("keeps both amounts of a tax that was converted, with the rate, its source and its day", () => {
    const fx = { rate: "1.08", source: "ECB", date: "2026-06-01" };
    const usd = { currency: "USD", number_of_guests: 2, nights: 3 };
    const rule = ruleOf("a", { ...person, ...flat("5.00") });
    const [component] = answerFor([rule], { ...usd, fx }).tax_breakdown.components;
    assert.equal(component?.tax_amount, "32.40");
    assert.deepEqual(component?.conversion, { currency: "EUR", amount: "30.00", ...fx });
    assert.match(component?.explanation ?? "", /30\.00 EUR at 1\.08 USD each \(ECB, 2026-06-01\)\.$/);
    const [local] = answerFor([rule], { fx }).tax_breakdown.components;
    assert.equal(local && "conversion" in local, false);
    const [share] = answerFor([ruleOf("b", { ...room, ...percent("5") })], { ...usd, fx }).tax_breakdown.components;
    assert.equal(share && "conversion" in share, false, "no amount of money was converted");
    const several = [
      { ...fx, rate: "9" },
      { ...fx, from: "EUR", rate: "2" },
    ];
    const [own] = answerFor([rule], { ...usd, fx: several }).tax_breakdown.components;
    assert.deepEqual([own?.tax_amount, own?.conversion?.rate], ["60.00", "2"]);
  });

  it("shows a converted tariff in its own currency, and rounds to cents what the law rounds to yen", () => {
    const fx = { rate: "0.01", source: "ECB", date: "2026-06-01" };
    const step = { above: "5000", every: "1000", add: "100" };
    const bands = { key: "price_per_room_night", mode: "slab", rows: [{ from: "0", flat: "200" }], step } as const;
    const yen = { currency: "JPY", rounding: { mode: "down", increment: "1" } } as const;
    const rule = ruleOf("a", { ...room, amount: { bands: { ...bands, rows: [...bands.rows] } }, ...yen });
    const [component] = answerFor([rule], { nights: 1, fx }).tax_breakdown.components;
    assert.deepEqual(
      [component?.tax_amount, component?.rate.value, component?.conversion?.amount],
      ["7.00", "700", "700"],
    );
    assert.equal(taxFor([ruleOf("b", { ...room, ...percent("1.5"), ...yen })], { nights: 1 }), "1.50");
  });

  it("refuses what does not fit together, with the field at fault", () => {
    const refused = (request: Parameters<typeof answerFor>[1]) => {
      try {
        answerFor([], request);
        return undefined;
      } catch (error) {
        assert.ok(error instanceof CalculationProblem);
        return error.field ?? error.kind;
      }
    };
    assert.equal(refused({ checkout_date: "2026-06-13" }), "checkout_date");
    assert.equal(refused({ checkout_date: "2026-06-12" }), undefined);
    assert.equal(refused({ stay_date: "2026-02-30" }), "stay_date");
    assert.equal(refused({ currency: "XQQ" }), "currency");
    assert.equal(refused({ number_of_guests: 3, guest_ages: [40] }), "guest_ages");
    assert.equal(refused({ number_of_guests: 1, adults: 2 }), "adults");
    assert.equal(refused({ jurisdiction_code: "XX-NOWHERE" }), "jurisdiction_code");
    assert.equal(refused({ nightly_rates: [{ date: "2026-07-01", rate: 5 }] }), "nightly_rates");
    const days = { stay_date: ["0000-01-01", "1899-12-31", "2200-01-01", "9999-12-31"], as_known_at: ["0001-01-01"] };
    for (const [field, dates] of Object.entries(days)) {
      for (const date of dates) assert.equal(refused({ [field]: date }), field, date);
    }
    assert.deepEqual(
      [refused({ stay_date: "1900-01-01" }), refused({ stay_date: "2199-12-31" })],
      [undefined, undefined],
    );
    assert.equal(refused({ adults: 2, number_of_guests: 2, guest_ages: [30, 5] }), "adults");
    assert.equal(refused({ adults: 1, guest_ages: [18, 19] }), "adults");
    assert.equal(refused({ adults: 2, guest_ages: [30, 18, 17] }), undefined);
    const fx = { rate: "1.08", source: "ECB", date: "2026-06-01" };
    assert.equal(refused({ fx: { ...fx, date: "2026-02-30" } }), "fx.date");
    assert.equal(refused({ fx: { ...fx, rate: "1e15" } }), "fx.rate");
    assert.equal(refused({ fx: [fx, { ...fx, from: "XQQ" }] }), "fx.1.from");
    const twice = ["2026-06-10", "2026-06-10"].map((date) => ({ date, rate: 5 }));
    assert.equal(refused({ nightly_rates: twice }), "nightly_rates");
    const tooFine = "100.000000000000000000000000001";
    for (const amount of [1e15, "1000000000000000", "1e15", 1e300, tooFine, "1e-19", 1e-19]) {
      assert.equal(refused({ nightly_rate: amount }), "nightly_rate");
      assert.equal(refused({ declared_tariff: amount }), "declared_tariff");
      assert.equal(refused({ included_amounts: { cleaning: amount } }), "included_amounts.cleaning");
      assert.equal(refused({ nightly_rates: [{ date: "2026-06-11", rate: amount }] }), "nightly_rates.0.rate");
    }
    for (const amount of ["999999999999999.999999999999999999", "0.000000000000000001", "1e2", 1e-18]) {
      assert.equal(refused({ nightly_rate: amount }), undefined);
    }
  });

  it("never calls an unknown place untaxed", () => {
    assert.equal(answerFor([]).coverage.status, "none_known");
    assert.equal(answerFor([ruleOf("a", { ...room, ...flat("1") })]).coverage.status, "verified");
    const press = rulesetOf(
      [ruleOf("a", { ...room, ...flat("1"), source: "press" })],
      {},
      { press: { kind: "press" } },
    );
    const stay = {
      jurisdiction_code: "NL-TST",
      stay_date: "2026-06-10",
      nights: 1,
      nightly_rate: 100,
      currency: "EUR",
    };
    assert.equal(calculate(stay, press, { today }).coverage.status, "partial");
    assert.equal(answerFor([ruleOf("a", { kind: "vat", ...room, ...percent("9") })]).coverage.status, "partial");
  });
});
