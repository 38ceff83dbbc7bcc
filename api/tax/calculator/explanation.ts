/** A component in words, so that a person at the desk can say why a guest pays it. */
import type { Predicate, RateAmount } from "../rules/rule.ts";
import type { KnownVersion, Terms } from "../rules/ruleset.ts";
import type { Stay } from "./calculation_request.ts";
import { counted } from "./counted.ts";
import { minorDigitsOf } from "./numbers/currency.ts";
import type { Rational } from "./numbers/rational.ts";
import type { AppliedRate, SegmentTax } from "./rule_tax.ts";

const unitTexts: Record<NonNullable<Terms["unit"]>, string> = {
  room_night: "room and night",
  person_night: "person and night",
  unit_night: "unit and night",
  room_stay: "room and stay",
  person_stay: "person and stay",
  stay: "stay",
};

/** `7.50 EUR per person and night`, `12.5 %`, `10 % of the tax`. */
export function rateText({ type, value }: AppliedRate, terms: Terms): string {
  switch (type) {
    case "flat":
      return `${value} ${terms.currency ?? ""} per ${terms.unit ? unitTexts[terms.unit] : "unit"}`.replace("  ", " ");
    case "percent":
      return `${value} %`;
    case "fraction":
      return `${value} of the price`;
    case "percent_of_tax":
      return `${value} % of the tax`;
  }
}

/** A tariff in words: `hotel, 5 stars: 10.00 EUR per person and night; …`, the first few of its cases. */
export function tariffText({ terms, cases }: Pick<KnownVersion, "terms" | "cases">): string {
  const shownMax = 12;
  const texts = (cases ?? [{ when: undefined, label: undefined, terms }]).map(({ when, label, terms: own }) => {
    const whom = label ?? whomText(when);
    return whom === "" ? amountText(own) : `${whom}: ${amountText(own)}`;
  });
  const unique = [...new Set(texts)];
  const shown = unique.slice(0, shownMax);
  return [...shown, ...(unique.length > shownMax ? [`and ${unique.length - shownMax} more`] : [])].join("; ");
}

function whomText(when: Predicate | undefined): string {
  const parts = Object.entries(when ?? {}).map(([fact, value]) => {
    const name = fact.replaceAll("_", " ");
    if (fact === "property_type" && Array.isArray(value)) return value.join(", ").replaceAll("_", " ");
    return `${name} ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value}`;
  });
  return parts.join(", ");
}

function amountText(terms: Terms): string {
  const { amount = {} } = terms;
  if (amount.percent_of_tax) return rateText({ type: "percent_of_tax", value: amount.percent_of_tax.percent }, terms);
  if (amount.bands) {
    const rows = amount.bands.rows.map((row) => `from ${row.from} ${plainText(row, terms)}`);
    return rows.join(", ");
  }
  return plainText(amount, terms);
}

function plainText({ flat, percent, fraction }: RateAmount, terms: Terms): string {
  if (percent !== undefined) return rateText({ type: "percent", value: percent }, terms);
  if (fraction) return rateText({ type: "fraction", value: `${fraction.n}/${fraction.d}` }, terms);
  return rateText({ type: "flat", value: flat ?? "0" }, terms);
}

/** `7.50 EUR per person and night: 2 persons x 10 nights = 150.00 EUR. Only 10 nights are taxed (2 nights).` */
export function explanationOf(
  segments: readonly SegmentTax[],
  stay: Stay,
  total: string,
  exemptions: readonly { reason: string; nights?: number; persons?: number }[],
): string {
  const digits = minorDigitsOf(stay.currency);
  const parts = segments.flatMap(({ segment, nights }) => {
    const taxed = nights.filter((night) => !night.exemption);
    const texts = new Map<string, number>();
    for (const night of taxed) {
      const what = night.charges
        .map(({ amount, quantity, slot }) => `${amount.toFixed(digits)} x ${counted(quantity, slot)}`)
        .join(" + ");
      const of = night.base && night.rate.type !== "flat" ? ` of ${night.base.toFixed(digits)} ${stay.currency}` : "";
      const text = `${rateText(night.rate, segment.terms)}${of}${what ? `: ${what}` : ""}`;
      texts.set(text, (texts.get(text) ?? 0) + 1);
    }
    const label = segment.label ? `${segment.label}: ` : "";
    return [...texts].map(([text, count]) => `${label}${text}${count > 1 ? `, ${counted(count, "nights")}` : ""}`);
  });
  const shown = parts.length > 6 ? [...parts.slice(0, 6), `and ${parts.length - 6} more`] : parts;
  const notes = exemptions.map(({ reason, nights, persons }) => {
    const count = nights ? ` (${counted(nights, "nights")})` : persons ? ` (${counted(persons, "guests")})` : "";
    return `${reason}${count}.`;
  });
  return [`${shown.length > 0 ? `${shown.join("; ")}. ` : ""}Total ${total} ${stay.currency}.`, ...notes].join(" ");
}

/** `30.00 EUR at 1.08 USD each (ECB, 2026-06-01).` */
export function conversionText(
  {
    currency,
    amount,
    rate,
    source,
    date,
  }: { currency: string; amount: string; rate: string; source: string; date: string },
  into: string,
): string {
  return `${amount} ${currency} at ${rate} ${into} each (${source}, ${date}).`;
}

/** What of an amount is not in the price that was said to include tax. */
export function onTopText(amount: Rational, within: Rational | undefined, stay: Stay): string[] {
  if (!stay.priceIncludesTax || amount.isZero) return [];
  if (within === undefined) return ["It stands on top of the price that includes tax."];
  const rest = amount.minus(within);
  if (rest.isZero) return [];
  const text = rest.toFixed(minorDigitsOf(stay.currency));
  return [`${text} ${stay.currency} of it stand on top of the price that includes tax.`];
}
