import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { placeAt } from "../places/place_at.ts";
import { loadRuleset } from "./rule_files.ts";

const source = { id: "law", title: "The law", url: "https://example.com", checked_on: "2026-01-01", kind: "official" };
const version = { version: 1, effective: { from: "2020-01-01" }, source: "law" };
const rule = {
  id: "nl-tst.tax",
  jurisdiction: "NL-TST",
  authority: "Testburg",
  name: "Tax",
  kind: "accommodation",
  currency: "EUR",
  unit: "room_night",
  amount: { flat: "1.00" },
  versions: [version],
};
const places = [{ code: "NL-TST", name: "Testburg", type: "city" }];

/** Loads one rules file and one file of places, as they would lie on disk. */
function load(rules: unknown, jurisdictions: unknown = places, more: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-rules-"));
  try {
    mkdirSync(join(folder, "jurisdictions"));
    mkdirSync(join(folder, "rules", "nl"), { recursive: true });
    writeFileSync(join(folder, "jurisdictions", "nl.json"), JSON.stringify({ about: "Test", jurisdictions }));
    const content =
      typeof rules === "string" ? rules : JSON.stringify({ about: "Test", sources: [source], rules, ...more });
    writeFileSync(join(folder, "rules", "nl", "test.json"), content);
    return loadRuleset(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
const problemOf = (...args: Parameters<typeof load>): string => {
  try {
    load(...args);
    return "none";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("the rules of the product", () => {
  const ruleset = loadRuleset();

  it("hold all 249 countries and a source for every figure", () => {
    const countries = [...ruleset.places.values()].filter((place) => place.code.length === 2);
    assert.equal(countries.length, 249);
    for (const one of ruleset.rules.values()) {
      for (const { source: from } of one.versions) assert.ok(from.url && from.checked_on, one.id);
    }
  });

  it("find a place by another of its codes, with the places above it", () => {
    assert.equal(ruleset.placeOf("FR-75")?.name, "Paris");
    assert.deepEqual(
      ruleset.stackOf("IT-RM-ROM").map((place) => place.code),
      ["IT-RM-ROM", "IT-RM", "IT-62", "IT"],
    );
    assert.equal(ruleset.placeOf("XX"), undefined);
  });

  it("give a place its rules with a fingerprint that stays, and are plain JSON", () => {
    const paris = ruleset.rulesIn("FR-75C");
    assert.match(paris?.hash ?? "", /^[0-9a-f]{64}$/);
    assert.equal(loadRuleset().rulesIn("FR-75C")?.hash, paris?.hash);
    assert.deepEqual(JSON.parse(JSON.stringify(paris)), JSON.parse(JSON.stringify(structuredClone(paris))));
    const surtaxes = paris?.rules.map((one) => one.id) ?? [];
    assert.ok(surtaxes.indexOf("fr-75.taxe-de-sejour") < surtaxes.indexOf("fr-75.taxe-idfm"));
  });

  it("leave out where a rule does not hold", () => {
    const rulesIn = (code: string) => ruleset.rulesIn(code)?.rules.map((one) => one.id) ?? [];
    assert.ok(rulesIn("ES-CT").includes("es-ct.ieet"));
    assert.ok(!rulesIn("ES-CT-BCN").includes("es-ct.ieet"));
    assert.ok(rulesIn("ES-CT-BCN").includes("es-ct-bcn.ieet"));
  });

  it("know the city at a point, and none in the sea", () => {
    assert.equal(placeAt(ruleset.places, 48.8606, 2.3376), "FR-75C");
    assert.equal(placeAt(ruleset.places, 35, -45), undefined);
  });
});

describe("the loader", () => {
  it("takes a file that is right", () => assert.equal(load([rule]).rulesIn("NL-TST")?.rules.length, 1));

  const wrong: [string, () => string, RegExp][] = [
    ["no JSON", () => problemOf("{"), /nl\/test\.json: is no JSON/],
    [
      "an unknown field",
      () => problemOf([{ ...rule, ammount: 1 }]),
      /nl-tst\.tax \(rules\.0\.ammount\): Unknown field/,
    ],
    ["a float for an amount", () => problemOf([{ ...rule, amount: { flat: 1.5 } }]), /rules\.0\.amount/],
    ["two amounts", () => problemOf([{ ...rule, amount: { flat: "1", percent: "2" } }]), /rules\.0\.amount/],
    ["no amount", () => problemOf([{ ...rule, amount: undefined }]), /nl-tst\.tax: version 1: amount is missing/],
    ["no currency", () => problemOf([{ ...rule, currency: undefined }]), /currency is missing/],
    ["an unknown currency", () => problemOf([{ ...rule, currency: "ZZQ" }]), /currency ZZQ is unknown/],
    ["an unknown source", () => problemOf([{ ...rule, versions: [{ ...version, source: "x" }] }]), /source x is not/],
    ["an unknown place", () => problemOf([{ ...rule, jurisdiction: "NL-XXX" }]), /NL-XXX does not exist/],
    ["an id twice", () => problemOf([rule, rule]), /its id is taken/],
    [
      "a day that is none",
      () => problemOf([{ ...rule, versions: [{ ...version, effective: { from: "2026-02-30" } }] }]),
      /2026-02-30 is no day/,
    ],
    [
      "overlapping versions",
      () =>
        problemOf([{ ...rule, versions: [version, { ...version, version: 2, effective: { from: "2021-01-01" } }] }]),
      /versions 1 and 2 overlap from 2021-01-01/,
    ],
    [
      "a rule that is not there",
      () => problemOf([{ ...rule, offset_by: ["nl.none"] }]),
      /a rule nl\.none that does not/,
    ],
    [
      "rules that need each other",
      () =>
        problemOf([
          rule,
          { ...rule, id: "nl-tst.b", offset_by: ["nl-tst.c"] },
          { ...rule, id: "nl-tst.c", offset_by: ["nl-tst.b"] },
        ]),
      /need each other: nl-tst\.b > nl-tst\.c > nl-tst\.b/,
    ],
    [
      "a tariff that ends with nothing behind it",
      () => problemOf([{ ...rule, versions: [{ ...version, effective: { from: "2020-01-01", to: "2026-01-01" } }] }]),
      /version 1 ends on 2026-01-01 and none follows: it needs on_lapse/,
    ],
    [
      "a lapse without a day to look again",
      () =>
        problemOf([
          {
            ...rule,
            versions: [{ ...version, effective: { from: "2020-01-01", to: "2026-01-01" }, on_lapse: "continue" }],
          },
        ]),
      /version 1 ends and none follows: it needs review_by/,
    ],
    [
      "a quote of no source",
      () => problemOf([{ ...rule, versions: [{ ...version, quotes: [{ source: "x", quote: "1.00" }] }] }]),
      /quotes x/,
    ],
    ["an unknown season", () => problemOf([{ ...rule, when: { season: "x" } }]), /season "x"/],
    ["no parent", () => problemOf([rule], [{ ...places[0], parent: "NL-ZZ" }]), /parent NL-ZZ does not exist/],
    ["a place twice", () => problemOf([rule], [places[0], places[0]]), /NL-TST stands in/],
    [
      "parents in a circle",
      () =>
        problemOf(
          [rule],
          [
            { ...places[0], parent: "NL-B" },
            { code: "NL-B", name: "B", type: "city", parent: "NL-TST" },
          ],
        ),
      /round in a circle/,
    ],
  ];
  for (const [what, problem, expected] of wrong)
    it(`refuses ${what}, by file and rule`, () => assert.match(problem(), expected));
});
