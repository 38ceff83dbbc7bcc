/** Invoices of stays in every place that has rules: whatever taxes a country has, the document carries all of them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { calculateWith } from "../calculator/calculate.ts";
import type { CalculationAnswer } from "../calculator/calculation_answer.ts";
import type { CalculationRequest } from "../calculator/calculation_request.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import { allTermsOf, type PlaceRules } from "../rules/ruleset.ts";
import { projectInvoice } from "./document_projection.ts";
import type { InvoiceDocument } from "./invoice_document.ts";

const ruleset = loadRuleset();
const today = "2026-11-21";
const places = [...new Set([...ruleset.rules.values()].map(({ jurisdiction }) => jurisdiction))]
  .map((code) => ruleset.rulesIn(code))
  .filter((place) => place !== undefined);

const shapes: Readonly<Record<string, Partial<CalculationRequest>>> = {
  "two nights for two": { nights: 2, nightly_rate: "200" },
  "three dear nights in two rooms, in summer, odd cents, a child": {
    stay_date: "2026-07-10",
    nights: 3,
    nightly_rate: "1333.33",
    rooms: 2,
    number_of_guests: 4,
    guest_ages: [40, 38, 12, 3],
  },
  "a night at a price that includes tax": { nights: 1, nightly_rate: "999999.99", price_includes_tax: true },
};

/** The amount of a stay is in a currency of the place's own taxes, so that none has to be converted. */
function requestAt(place: PlaceRules, shape: Partial<CalculationRequest>): CalculationRequest {
  const currencies = [...new Set(place.rules.flatMap(allTermsOf).flatMap(({ currency }) => currency ?? []))];
  const [currency = "EUR", ...others] = currencies;
  return {
    jurisdiction_code: place.place.code,
    stay_date: "2026-12-01",
    nights: 1,
    nightly_rate: "200",
    currency,
    number_of_guests: 2,
    star_rating: 4,
    fx: others.map((from) => ({ from, rate: "1.1", source: "test", date: today })),
    ...shape,
  };
}

const plus = (amounts: readonly string[]) => sumOf(amounts.map((amount) => Rational.parse(amount)));

/** What is wrong with a document of that answer, in words. */
function problemsOf(document: InvoiceDocument, answer: CalculationAnswer, nights: number): string[] {
  const digits = minorDigitsOf(answer.currency);
  const problems: string[] = [];
  const same = (what: string, found: string, expected: string) => {
    if (Rational.parse(found).compare(Rational.parse(expected)) !== 0)
      problems.push(`${what} ${found} not ${expected}`);
  };
  same("with_vat", document.totals.with_vat, answer.total_with_tax);
  same("payable", document.totals.payable, answer.total_with_tax);
  same("line_net", document.totals.line_net, plus(document.lines.map((line) => line.net_amount)).toFixed(digits));
  same("vat", document.totals.vat, plus(document.vat_breakdown.map((vat) => vat.tax_amount)).toFixed(digits));
  // Each tax is a line or in the breakdown.
  const { components } = answer.tax_breakdown;
  const charged = new Set(document.lines.map(({ rule_id }) => rule_id));
  const asVat = components.filter(({ rule_id, kind }) => kind === "vat" && !charged.has(rule_id));
  same("vat of the booking", document.totals.vat, plus(asVat.map(({ tax_amount }) => tax_amount)).toFixed(digits));
  for (const { rule_id, tax_amount, kind } of components) {
    if (kind !== "vat" && !charged.has(rule_id) && !Rational.parse(tax_amount).isZero) problems.push(`lost ${rule_id}`);
  }
  // Base times rate is the VAT, but for what is rounded night by night.
  const cent = Rational.of(1n, 10n ** BigInt(digits));
  const tolerance = cent.times(Rational.of(nights + components.length));
  for (const { vat_rate, taxable_amount, tax_amount } of document.vat_breakdown) {
    const expected = Rational.parse(taxable_amount)
      .times(Rational.parse(vat_rate ?? "0"))
      .over(Rational.of(100));
    const difference = expected.minus(Rational.parse(tax_amount));
    const size = difference.isNegative ? Rational.zero.minus(difference) : difference;
    if (size.compare(tolerance) > 0) problems.push(`${taxable_amount} at ${vat_rate} is not ${tax_amount}`);
  }
  return problems;
}

function documentAt(code: string, fields: Partial<CalculationRequest>) {
  const place = ruleset.rulesIn(code);
  assert.ok(place);
  const request = { ...requestAt(place, {}), ...fields };
  const answer = calculateWith(place, request, today);
  const document = projectInvoice({ answer, request, rules: place.rules }, { country: place.country }, {});
  assert.deepEqual(problemsOf(document, answer, request.nights), []);
  return document;
}
const linesOf = ({ lines }: InvoiceDocument) =>
  lines.map((line) => [line.net_amount, line.vat_category, line.vat_rate, line.further_vat_rates.join()]);
const breakdownOf = ({ vat_breakdown }: InvoiceDocument) =>
  vat_breakdown.map((vat) => [vat.vat_category, vat.vat_rate, vat.taxable_amount, vat.tax_amount]);

describe("several general taxes on an invoice", () => {
  it("are all told where they are due on the same amount: Quebec's beside Canada's", () => {
    const document = documentAt("CA-QC", { nights: 2, nightly_rate: "200", currency: "CAD" });
    assert.deepEqual(linesOf(document), [
      ["400.00", "S", "5", "9.975"],
      ["14.00", "S", "5", "9.975"],
    ]);
    assert.deepEqual(breakdownOf(document), [
      ["S", "5", "414.00", "20.70"],
      ["S", "9.975", "414.00", "41.30"],
    ]);
    assert.equal(document.totals.vat, "62.00");
    assert.equal(document.totals.with_vat, "476.00");
    assert.equal(new Set(document.vat_breakdown.map(({ tax_name }) => tax_name)).size, 2);
  });

  it("are told apart where two have one rate: Ghana's levies since 2026", () => {
    const document = documentAt("GH", { stay_date: "2026-03-01", nights: 1, nightly_rate: "1000", currency: "GHS" });
    const vats = breakdownOf(document).filter(([category]) => category === "S");
    assert.deepEqual(
      vats.map(([, rate, taxable, tax]) => [rate, taxable, tax]),
      [
        ["2.5", "1000.00", "25.00"],
        ["2.5", "1000.00", "25.00"],
        ["15", "1000.00", "150.00"],
      ],
    );
  });

  it("are a charge under the one that is due on them: Ghana's levies until 2025", () => {
    const document = documentAt("GH", { stay_date: "2025-03-01", nights: 1, nightly_rate: "1000", currency: "GHS" });
    assert.deepEqual(
      breakdownOf(document).filter(([category]) => category === "S"),
      [["S", "15", "1060.00", "159.00"]],
    );
  });

  it("are lines as sales taxes, of the state and of the town", () => {
    const document = documentAt("US-NY-NYC", { nights: 2, nightly_rate: "200", currency: "USD" });
    assert.ok(document.lines.filter(({ rule_id }) => rule_id !== null).length >= 3);
    assert.equal(document.totals.vat, "0.00");
  });
});

describe("a tax in the base of VAT", () => {
  it("is under that VAT where its law names it: Vancouver's GST on the taxes of the province", () => {
    const document = documentAt("CA-BC-VAN", { nights: 1, nightly_rate: "100", currency: "CAD" });
    assert.deepEqual(breakdownOf(document), [["S", "5", "113.50", "5.68"]]);
    assert.ok(document.lines.every((line) => line.vat_category === "S" && line.vat_rate === "5"));
    const whole = documentAt("CA-BC-VAN", { nights: 10, nightly_rate: "300", currency: "CAD" });
    assert.deepEqual(breakdownOf(whole), [["S", "5", "3405.00", "170.25"]]);
  });

  it("is under it on the nights of that law alone", () => {
    const fields = { stay_date: "2030-01-31", nights: 2, nightly_rate: "100", currency: "CAD" };
    const document = documentAt("CA-BC-VAN", fields);
    const standard = breakdownOf(document).filter(([category]) => category === "S");
    assert.deepEqual(standard, [["S", "5", "213.50", "10.68"]]);
  });
});

describe("an invoice of any place", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it(`comes to what the booking does and names every tax: ${name}`, () => {
      const found = places.flatMap((place) => {
        const request = requestAt(place, shape);
        const answer = calculateWith(place, request, today);
        const seller = { country: place.country, vat_id: `${place.country}123456789` };
        const document = projectInvoice({ answer, request, rules: place.rules }, seller, {});
        return problemsOf(document, answer, request.nights).map((problem) => `${place.place.code}: ${problem}`);
      });
      assert.deepEqual(found, []);
      assert.ok(places.length > 500);
    });
  }
});
