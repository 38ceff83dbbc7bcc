/** Rounding by law: how, to what, and at which level. The last taxed night bears what rounding the line changes. */
import type { Terms } from "../../rules/ruleset.ts";
import { type NightTax, type SegmentTax, totalOf } from "../rule_tax.ts";
import { minorDigitsOf } from "./currency.ts";
import { Rational, sumOf } from "./rational.ts";

export function roundingOf(terms: Terms, currency: string) {
  const digits = minorDigitsOf(currency);
  const { mode = "half_up", increment, at = "line" } = terms.rounding ?? {};
  // So many yen are no increment of dollars.
  const isForeign = terms.currency !== undefined && terms.currency !== currency;
  return {
    mode,
    increment:
      increment === undefined || isForeign ? Rational.of(1n, 10n ** BigInt(digits)) : Rational.parse(increment),
    at: at === "stay" ? ("line" as const) : at,
  } as const;
}

export function roundParts(nights: readonly NightTax[], terms: Terms, currency: string): void {
  const { mode, increment, at } = roundingOf(terms, currency);
  if (at === "line") return;
  const isStayUnit = terms.unit?.endsWith("stay") ?? false;
  if (at === "night" && !isStayUnit) {
    for (const night of nights) night.total = night.total.roundTo(increment, mode);
    return;
  }
  for (const night of nights) {
    for (const charge of night.charges) charge.amount = charge.amount.roundTo(increment, mode);
    if (!isStayUnit) night.total = totalOf(night.charges);
  }
  if (isStayUnit) spread(nights, totalOf(nights.flatMap((night) => night.charges)));
}

/** Rounds what all segments of one version come to; the last taxed night bears the difference. */
export function roundLine(segments: readonly SegmentTax[], currency: string): void {
  const nights = segments.flatMap((one) => one.nights).filter((night) => !night.total.isZero);
  const [first] = segments;
  if (!first || nights.length === 0) return;
  const { mode, increment } = roundingOf(first.segment.terms, currency);
  spread(nights, sumOf(nights.map((night) => night.total)).roundTo(increment, mode));
}

function spread(nights: readonly NightTax[], whole: Rational): void {
  const last = nights.at(-1);
  if (last) last.total = last.total.plus(whole.minus(sumOf(nights.map((night) => night.total))));
}
