import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ruleOf, rulesetOf, today } from "#test/kit/tax/calculation_fixture.ts";
import { placeAt } from "../places/place_at.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import type { PlaceRules } from "../rules/ruleset.ts";
import type { AtlasFile } from "../rules/slot.ts";
import { calculate, calculateWith } from "./calculate.ts";
import type { CalculationAnswer } from "./calculation_answer.ts";
import { CalculationProblem, type CalculationRequest } from "./calculation_request.ts";
import type { Completeness } from "./completeness.ts";

const room = { unit: "room_night" } as const;
const flat = (amount: string) => ({ amount: { flat: amount } });
const source = {
  id: "law",
  title: "The law",
  url: "https://example.com",
  checked_on: "2026-01-01",
  kind: "law",
} as const;
const stay = { jurisdiction_code: "NL-TST", stay_date: "2026-06-10", nights: 2, nightly_rate: 100, currency: "EUR" };

const here = { in: ["NL-TST"], level: "city" as const, kind: "accommodation" as const };

type Rules = Parameters<typeof rulesetOf>[0];

function atlasWith(...statements: NonNullable<AtlasFile["statements"]>): AtlasFile {
  const slots = [{ level: "city", kind: "accommodation" }] as const;
  return { about: "Test", sources: [source], countries: [{ country: "NL", slots: [...slots] }], statements };
}

function answerOf(rules: Rules, request: Partial<CalculationRequest> = {}, atlas?: AtlasFile): CalculationAnswer {
  return calculate({ ...stay, ...request }, rulesetOf(rules, {}, { press: { kind: "press" } }, atlas), { today });
}
const slotOf = (...args: Parameters<typeof answerOf>) => answerOf(...args).completeness.slots[0];
const refusalOf = (...args: Parameters<typeof answerOf>): CalculationProblem | undefined => {
  try {
    answerOf(...args);
  } catch (error) {
    if (error instanceof CalculationProblem) return error;
    throw error;
  }
};

const ended = (on_lapse: "continue" | "end" | "unknown") =>
  ruleOf("a", { ...room, ...flat("3.00"), effective: { from: "2020-01-01", to: "2026-06-11" }, on_lapse });

describe("the completeness of an answer", () => {
  it("is complete where every tax that may exist is known, and then bounds are the total", () => {
    const { completeness, coverage } = answerOf([ruleOf("a", { ...room, ...flat("1.00") })]);
    assert.deepEqual([completeness.status, completeness.slots[0]?.state], ["complete", "known"]);
    assert.deepEqual([completeness.min_total_tax, completeness.max_total_tax], ["2.00", "2.00"]);
    assert.equal(coverage.status, "verified");
  });

  it("calls unknown what may be taxed and nobody read, with no bound, and names it in the notes", () => {
    const { completeness, coverage } = answerOf([]);
    assert.deepEqual([completeness.status, completeness.max_total_tax], ["incomplete", null]);
    assert.deepEqual(coverage.notes, ["city accommodation tax in Testburg (NL-TST) is unknown"]);
  });

  it("takes a zero from a source alone", () => {
    const none = { ...here, note: "The council levies none" };
    const slot = slotOf([], {}, atlasWith({ ...none, state: "known_zero", source: "law" }));
    assert.deepEqual([slot?.state, slot?.source?.title], ["known_zero", "The law"]);
    assert.equal(
      answerOf([], {}, atlasWith({ ...none, state: "known_zero", source: "law" })).coverage.status,
      "no_tax",
    );
    assert.throws(() => answerOf([], {}, atlasWith({ ...none, state: "known_zero" })), /known_zero needs a source/);
  });

  it("trusts a zero no longer than the day on which somebody has to look again", () => {
    const none = { ...here, note: "None", state: "known_zero" as const };
    const slot = slotOf([], {}, atlasWith({ ...none, source: "law", review_by: "2026-05-01" }));
    assert.equal(slot?.state, "assumed_continues");
  });

  it("calls reported what one secondary source says", () => {
    const rule = ruleOf("a", { ...room, ...flat("1.00"), source: "press" });
    assert.deepEqual([slotOf([rule])?.state, answerOf([rule]).completeness.status], ["reported", "assumed"]);
    assert.equal(answerOf([rule]).tax_breakdown.components[0]?.confidence, "low");
  });

  it("trusts a figure one class less once its day of review is over", () => {
    const rule = ruleOf("a", { ...room, ...flat("1.00") });
    const [version] = rule.versions;
    const reviewed = (review_by: string) => [{ ...rule, versions: [{ ...version, review_by }] }] as Rules;
    const confidence = (rules: Rules) => answerOf(rules).tax_breakdown.components[0]?.confidence;
    assert.deepEqual([confidence(reviewed("2026-06-02")), confidence(reviewed("2026-06-01"))], ["high", "medium"]);
  });

  it("goes on with a tariff that ended, where that is assumed, and says so", () => {
    const answer = answerOf([ended("continue")]);
    assert.equal(answer.tax_breakdown.total_tax, "6.00");
    assert.deepEqual(
      [answer.completeness.slots[0]?.state, answer.completeness.slots[0]?.known_until],
      ["assumed_continues", "2026-06-11"],
    );
    assert.equal(answer.tax_breakdown.components[0]?.assumed, true);
    assert.equal(answerOf([ended("continue")], { nights: 1 }).tax_breakdown.components[0]?.assumed, false);
  });

  it("counts nothing of a tariff that lapsed, and says what it would come to at most", () => {
    const { completeness, tax_breakdown } = answerOf([ended("unknown")]);
    assert.equal(completeness.slots[0]?.state, "lapsed");
    assert.deepEqual(
      [tax_breakdown.total_tax, completeness.min_total_tax, completeness.max_total_tax],
      ["3.00", "3.00", "6.00"],
    );
  });

  it("knows that a tax has ended where its source says so", () => {
    const later = { stay_date: "2026-07-01" };
    const { completeness } = answerOf([ended("end")], later);
    assert.deepEqual([completeness.status, completeness.slots[0]?.state], ["complete", "known_zero"]);
    assert.equal(answerOf([ended("end")]).completeness.slots[0]?.state, "known");
  });

  it("knows that a tax has not begun, and not what a tax came to before what is held", () => {
    const begins = ruleOf("a", { ...room, ...flat("1.00"), effective: { from: "2026-07-01" } });
    assert.equal(slotOf([begins])?.state, "known_zero");
    assert.match(slotOf([begins])?.note ?? "", /begins on 2026-07-01/);
    const held = ruleOf("a", { ...room, ...flat("1.00"), effective: { from: "2026-03-01" } });
    assert.equal(slotOf([held], { stay_date: "2026-02-01" })?.state, "unknown");
  });

  it("does not call untaxed a property that the tariff it holds does not name, unless the law says so", () => {
    const cases = [{ when: { property_type: ["campsite" as const] }, ...flat("1.00") }];
    assert.equal(slotOf([ruleOf("a", { ...room, cases })])?.state, "unknown");
    assert.equal(slotOf([ruleOf("a", { ...room, cases, otherwise: "not_taxed" })])?.state, "known");
    const seasonal = [{ when: { season: "summer" }, ...flat("1.00") }];
    const seasons = { summer: [{ from: "07-01", to: "08-31" }] };
    const ruleset = rulesetOf([ruleOf("a", { ...room, cases: seasonal })], seasons);
    assert.equal(calculate(stay, ruleset, { today }).completeness.slots[0]?.state, "known");
  });

  it("is incomplete for a country or a division above the towns that tax", () => {
    assert.equal(slotOf([], { jurisdiction_code: "NL" })?.state, "unknown");
    assert.match(slotOf([], { jurisdiction_code: "NL" })?.note ?? "", /^Netherlands.* is wider than a town/);
  });

  it("says what it took for a fact that is missing", () => {
    const cases = [5, 3].map((stars) => ({ when: { stars: [stars] }, ...flat(`${stars}.00`) }));
    const { completeness, missing_inputs } = answerOf([ruleOf("a", { ...room, cases })]);
    assert.equal(missing_inputs[0]?.assumed, "5");
    assert.deepEqual([completeness.min_total_tax, completeness.max_total_tax], ["6.00", "10.00"]);
  });

  it("is refused by require_complete with what is missing, and by accept_assumed: false with what is assumed", () => {
    const refused = refusalOf([], { require_complete: true });
    assert.equal(refused?.message, "incomplete: city accommodation tax in Testburg (NL-TST) is unknown");
    assert.equal((refused?.beside?.completeness as Completeness | undefined)?.status, "incomplete");
    const assumed = [ended("continue")];
    assert.equal(refusalOf(assumed, { require_complete: true }), undefined);
    assert.match(refusalOf(assumed, { accept_assumed: false })?.message ?? "", /is assumed to go on as it was/);
    const known = [ruleOf("a", { ...room, ...flat("1.00") })];
    assert.equal(refusalOf(known, { require_complete: true, accept_assumed: false }), undefined);
  });

  it("is unknown for what was frozen before it was kept", () => {
    const place = rulesetOf([ruleOf("a", { ...room, ...flat("1.00") })]).rulesIn("NL-TST") as PlaceRules;
    const { slots: _, ...old } = JSON.parse(JSON.stringify(place)) as PlaceRules;
    const { completeness, tax_breakdown } = calculateWith(old, stay, today);
    assert.deepEqual([completeness.status, tax_breakdown.total_tax], ["incomplete", "2.00"]);
  });
});

describe("all places of the product", () => {
  const ruleset = loadRuleset();
  const days = ["2026-11-22", "2026-12-22", "2027-01-15", "2027-07-15", "2028-01-15"];

  it("answer no bare zero on any day: it is a statement with a source, or the answer says that it is not sure", () => {
    const silent: string[] = [];
    for (const code of ruleset.places.keys()) {
      for (const stay_date of days) {
        const problem = silenceOf(code, stay_date);
        if (problem) silent.push(`${code} on ${stay_date}: ${problem}`);
      }
    }
    assert.deepEqual(silent, []);
  });

  it("depend on a zone that taxes as well, but at a point that is surely outside of it", () => {
    const locate = (latitude: number, longitude: number) => placeAt(ruleset.places, latitude, longitude);
    const stay = { stay_date: "2026-12-10", nights: 1, nightly_rate: 100, currency: "EUR", number_of_guests: 2 };
    const at = (where: Partial<CalculationRequest>) => {
      const { jurisdiction, completeness, ruleset_hash } = calculate({ ...stay, ...where }, ruleset, { today, locate });
      const slot = completeness.slots.find(({ level }) => level === "city");
      return { code: jurisdiction.code, state: slot?.state, note: slot?.note ?? "", ruleset_hash };
    };
    const city = at({ jurisdiction_code: "SK-BL-BTS" });
    assert.equal(city.state, "unknown");
    assert.match(city.note, /^Depends on the zone; name it or give a point: .*SK-BL-BTS-STARE/);
    const suburb = at({ latitude: 48.18, longitude: 17.05 });
    assert.deepEqual([suburb.code, suburb.state], ["SK-BL-BTS", "reported"]);
    assert.notEqual(suburb.ruleset_hash, city.ruleset_hash, "a booking freezes what was settled");
    assert.equal(at({ latitude: 48.1435, longitude: 17.108 }).code, "SK-BL-BTS-STARE");
    assert.match(at({ jurisdiction_code: "US-CA-ANA", currency: "USD" }).note, /^Depends on the zone; name it: /);
  });

  function silenceOf(jurisdiction_code: string, stay_date: string): string | undefined {
    const fx = { rate: "1", source: "test", date: "2026-11-22" };
    const ordinary = { nights: 1, nightly_rate: 200, number_of_guests: 2, star_rating: 4, currency: "EUR", fx };
    const answer = calculate({ jurisdiction_code, stay_date, ...ordinary }, ruleset, { today: "2026-11-22" });
    const { slots, status } = answer.completeness;
    const onStays = slots.filter(({ kind }) => kind === "accommodation" || kind === "fee");
    for (const slot of slots) {
      if (slot.state === "known_zero" && !slot.source) return `${slot.level} ${slot.kind} is zero without a source`;
    }
    if (status !== "complete") {
      const named = slots.filter(({ state }) => state !== "known" && state !== "known_zero");
      return named.every(({ jurisdiction_name }) =>
        answer.coverage.notes.some((note) => note.includes(jurisdiction_name)),
      )
        ? undefined
        : "its notes do not name what is not known";
    }
    if (Number(answer.totals_by_kind.accommodation) > 0 || Number(answer.totals_by_kind.fee ?? 0) > 0) return undefined;
    const reasons = new Set(answer.rules_applied.map(({ rule_id }) => rule_id));
    return onStays.every(({ state, rule_ids }) => state === "known_zero" || rule_ids.every((id) => reasons.has(id)))
      ? undefined
      : "zero, and no reason";
  }
});
