/** What a rule comes to on a stay, night by night: the words that its computation is told in. */
import type { KnownRule, Terms } from "../rules/ruleset.ts";
import { CalculationProblem, type Stay } from "./calculation_request.ts";
import { Rational, sumOf } from "./numbers/rational.ts";
import type { Exemption, Segment } from "./segments.ts";

/** So many times so much. */
export interface Charge {
  amount: Rational;
  quantity: number;
  /** Which persons or things these are; the same slot is the same ones every night. */
  slot: string;
}

export interface AppliedRate {
  type: "flat" | "percent" | "fraction" | "percent_of_tax";
  value: string;
}

/** One night of a segment; a tax by the stay has its charges on the first night. */
export interface NightTax {
  index: number;
  rate: AppliedRate;
  charges: Charge[];
  total: Rational;
  /** The total before any rounding. */
  unrounded: Rational;
  /** What a percentage was taken of, for all rooms; undefined for flat amounts. */
  base: Rational | undefined;
  exemption: Exemption | undefined;
}

export interface SegmentTax {
  segment: Segment;
  nights: NightTax[];
  persons: PersonShares | undefined;
}

export interface RuleTax {
  rule: KnownRule;
  segments: SegmentTax[];
  skipped: readonly string[];
  /** By night of the stay. */
  totals: readonly Rational[];
}

/** What a rule may need to know besides the stay. */
export interface Surroundings {
  stay: Stay;
  /** One room's price by night without the taxes in it. */
  netPrices: readonly Rational[];
  /** What has been computed before, by rule id. */
  taxes: ReadonlyMap<string, RuleTax>;
  /** VAT and sales taxes on the room alone by night, for all rooms: what makes a net price gross. */
  generalTaxOnRoom(): readonly Rational[];
  /** Off while a price is being taken apart, where only exact amounts add up. */
  rounds: boolean;
}

export interface PersonShares {
  shares: { slot: string; factor: Rational; flat: Rational | undefined; count: number }[];
  paying: number;
  /** Ages that pay nothing, and how many guests have them. */
  exempt: number;
}

/** Reads an amount of the rule in the currency of the stay. */
export type MoneyReader = (text: string) => Rational;

export function moneyReader(rule: KnownRule, terms: Terms, stay: Stay): MoneyReader {
  return (text) => {
    const amount = Rational.parse(text);
    const currency = terms.currency ?? stay.currency;
    if (amount.isZero || currency === stay.currency) return amount;
    const exchange = stay.exchangeFrom(currency);
    if (!exchange) {
      throw new CalculationProblem(
        "currency_mismatch",
        `currency mismatch: ${rule.name} is set in ${currency}, the calculation is in ${stay.currency}; give fx {rate, source, date} or calculate in ${currency}`,
        "currency",
      );
    }
    return amount.times(exchange.rate);
  };
}

export const totalOf = (charges: readonly Charge[]) =>
  sumOf(charges.map(({ amount, quantity }) => amount.times(Rational.of(quantity))));

export const hundredth = (percent: string) => Rational.parse(percent).over(Rational.of(100));
