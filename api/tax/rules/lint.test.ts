import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ruleOf, rulesetOf } from "#test/kit/tax/calculation_fixture.ts";
import { lintRuleset, reviewsDue } from "./lint.ts";
import type { Rule } from "./rule.ts";
import { loadRuleset } from "./rule_files.ts";
import type { AtlasFile } from "./slot.ts";

const room = { unit: "room_night", amount: { flat: "7.50" } } as const;
const source = {
  id: "law",
  title: "The law",
  url: "https://example.com",
  checked_on: "2026-01-01",
  kind: "law",
} as const;
const slot = { level: "city", kind: "accommodation" } as const;
const atlasOf = (change: Partial<AtlasFile> = {}): AtlasFile => ({
  about: "Test",
  sources: [source],
  countries: [{ country: "NL", slots: [slot] }],
  ...change,
});
const lint = (rules: readonly Rule[], atlas = atlasOf()) => lintRuleset(rulesetOf(rules, {}, {}, atlas));
const quoted = (quote: string, terms: Parameters<typeof ruleOf>[1] = room) =>
  lint([ruleOf("a", { ...terms, quotes: [{ source: "law", quote }] })]);
const sound = ruleOf("a", { ...room, quotes: [{ source: "law", quote: "7,50 € per nacht" }] });

describe("the linter of the rules", () => {
  it("finds nothing wrong with the rules of the product", () => assert.deepEqual(lintRuleset(loadRuleset()), []));

  it("finds nothing wrong with a rule that is sound", () => assert.deepEqual(lint([sound]), []));

  it("wants the figure in the words that are quoted, however the language writes it", () => {
    assert.match(quoted("per night and person").join(), /none of its figures is in the words/);
    assert.match(quoted("8,50 € per night").join(), /none of its figures/);
    const ways = ["7,5 % du prix", "7.50 euro", "７．５０ユーロ", "from 1 May 7.5 percent"];
    for (const words of ways) assert.deepEqual(quoted(words), [], words);
    const yen = { unit: "room_night" as const, amount: { flat: "1000" }, currency: "JPY" };
    for (const words of ["1,000円", "1000円", "1 000 yen", "1.000 yen"])
      assert.deepEqual(quoted(words, yen), [], words);
    const two = { unit: "room_night" as const, amount: { flat: "2.00" } };
    assert.deepEqual(quoted("zwei Euro pro Nacht und Gast", two), []);
    assert.match(quoted("drei Euro pro Nacht und Gast", two).join(), /none of its figures/);
    const third = { unit: "room_night" as const, amount: { fraction: { n: 1, d: 15 } } };
    assert.deepEqual(quoted("1/15 des Preises", third), []);
  });

  it("refuses a rule where the law allows no such tax", () => {
    const national = atlasOf({ countries: [{ country: "NL", slots: [{ level: "country", kind: "vat" }] }] });
    assert.match(lint([sound], national).join(), /no slot of the atlas allows accommodation in NL-TST/);
  });

  it("refuses a rule that a statement on its place, or on one above, denies on the same days", () => {
    const denial = { ...slot, state: "known_zero", note: "The law forbids it", source: "law" } as const;
    const denied = (change: object) => lint([sound], atlasOf({ statements: [{ ...denial, in: ["NL"], ...change }] }));
    assert.match(denied({}).join(), /"The law forbids it" denies xx\.a/);
    assert.match(denied({ in: ["NL-TST"] }).join(), /denies/);
    assert.deepEqual(denied({ to: "2019-01-01" }), []);
  });

  it("refuses a surtax of a tax that does not hold there", () => {
    const surtax = ruleOf("b", {
      amount: { percent_of_tax: { of: ["xx.a"], percent: "10" } },
      quotes: [{ source: "law", quote: "10 %" }],
    });
    assert.deepEqual(lint([sound, surtax]), []);
    const elsewhere = { ...sound, except_in: ["NL-TST"] };
    assert.match(lint([elsewhere, surtax]).join(), /xx\.b: is taken of xx\.a, which does not hold in NL-TST/);
  });

  it("refuses an amount above the ceiling of the law, from the day on which that holds", () => {
    const ceiling = (amount: string, from: string) =>
      atlasOf({ countries: [{ country: "NL", slots: [{ ...slot, ceiling: { unit: "room_night", amount, from } }] }] });
    assert.match(lint([sound], ceiling("5.00", "2019-01-01")).join(), /7\.50 is above the ceiling of the law, 5\.00/);
    assert.deepEqual(lint([sound], ceiling("7.50", "2019-01-01")), []);
    assert.deepEqual(lint([sound], ceiling("5.00", "2021-01-01")), []);
  });

  it("lists what somebody has to look at again by a day, the first due first", () => {
    const ruleset = rulesetOf([ruleOf("a", room)]);
    assert.deepEqual(reviewsDue(ruleset, "2026-06-29"), []);
    assert.deepEqual(reviewsDue(ruleset, "2026-06-30"), [
      { id: "xx.a", reviewBy: "2026-06-30", url: "https://example.com/law" },
    ]);
  });
});
