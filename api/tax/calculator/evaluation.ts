/**
 * All rules of a place over one stay, in order of dependence, and the way back from a price that
 * has the taxes in it to the one that has not.
 */
import { allTermsOf, type KnownRule, type PlaceRules, type Terms } from "../rules/ruleset.ts";
import { CalculationProblem, type Stay } from "./calculation_request.ts";
import { Rational, sumOf } from "./numbers/rational.ts";
import { taxOf } from "./rule_amounts.ts";
import type { RuleTax } from "./rule_tax.ts";

export interface Evaluation {
  taxes: readonly RuleTax[];
  /** One room's price by night without tax. */
  netPrices: readonly Rational[];
  /** What of each rule's tax is within the price as asked, by rule id; none unless the price includes tax. */
  inside: ReadonlyMap<string, RuleTax>;
}

/** @param known what rules come to that cannot differ from an evaluation before, by rule id */
export function evaluate(place: PlaceRules, stay: Stay, known: ReadonlyMap<string, RuleTax> = nothing): Evaluation {
  if (!stay.priceIncludesTax) {
    return { taxes: allTaxes(place.rules, stay, stay.prices, true, known), netPrices: stay.prices, inside: nothing };
  }
  const onTop = rulesOnTop(place.rules);
  const contained = place.rules.filter((rule) => !onTop.has(rule.id));
  const netPrices = netPricesOf(contained, stay);
  const taxes = allTaxes(place.rules, stay, netPrices, true);
  // A contained tax may also be due on one that stands on top, as VAT is: that part is not in the price.
  const inside = onTop.size === 0 ? taxes : allTaxes(contained, stay, netPrices, true);
  return { taxes, netPrices, inside: new Map(inside.map((tax) => [tax.rule.id, tax])) };
}

const nothing: ReadonlyMap<string, RuleTax> = new Map();

function allTaxes(
  rules: readonly KnownRule[],
  stay: Stay,
  netPrices: readonly Rational[],
  rounds: boolean,
  known = nothing,
): RuleTax[] {
  const taxes = new Map<string, RuleTax>();
  let general: readonly Rational[] | undefined;
  const generalTaxOnRoom = () => {
    general ??= generalTaxesOn(rules, stay, netPrices);
    return general;
  };
  const around = { stay, netPrices, taxes, generalTaxOnRoom, rounds };
  for (const rule of rules) taxes.set(rule.id, known.get(rule.id) ?? taxOf(rule, around));
  return [...taxes.values()];
}

/** VAT and sales taxes by night as if there were no other tax. */
function generalTaxesOn(rules: readonly KnownRule[], stay: Stay, netPrices: readonly Rational[]): Rational[] {
  const taxes = new Map<string, RuleTax>();
  for (const rule of rules) {
    if (rule.kind !== "vat" && rule.kind !== "sales") continue;
    const generalTaxOnRoom = () => stay.dates.map(() => Rational.zero);
    taxes.set(rule.id, taxOf(rule, { stay, netPrices, taxes, generalTaxOnRoom, rounds: false }));
  }
  return nightSums([...taxes.values()], stay);
}

/**
 * A tax on the gross price stands on top of it: the price "with tax" is the one that its law means.
 * So does what is due on such taxes alone, as a surtax or a VAT of their own. `rules` in order of dependence.
 */
function rulesOnTop(rules: readonly KnownRule[]): Set<string> {
  const onTop = new Set<string>();
  for (const rule of rules) {
    const terms = allTermsOf(rule);
    const isOnGrossPrice = terms.some(({ base }) => base?.price === "gross");
    const isOnThem = terms.length > 0 && terms.every((one) => isAllOf(taxesAloneIn(one), onTop));
    if (isOnGrossPrice || isOnThem) onTop.add(rule.id);
  }
  return onTop;
}

/** The rules that these terms take a tax of and of nothing else; none where the room counts. */
function taxesAloneIn({ amount, base }: Terms): readonly string[] {
  if (amount?.percent_of_tax) return amount.percent_of_tax.of;
  return base?.includes?.length === 0 ? (base.includes_tax ?? []) : [];
}

const isAllOf = (ids: readonly string[], set: ReadonlySet<string>) => ids.length > 0 && ids.every((id) => set.has(id));

function nightSums(taxes: readonly RuleTax[], stay: Stay): Rational[] {
  return stay.dates.map((_, index) => sumOf(taxes.map((tax) => tax.totals[index] ?? Rational.zero)));
}

/** Newton's method on a function made of straight pieces ends exactly, unless the answer is at a jump. */
const newtonStepsMax = 8;
const bisectionsMax = 60;
const nudge = Rational.of(1n, 1_000_000_000n);
/** Where taxes depend on prices of other nights the steps come nearer without end, and their fractions grow. */
const fractionMax = 10n ** 40n;
const exactMax = 10n ** 15n;
const finest = Rational.of(1n, 10n ** 18n);
const nearEnough = Rational.of(1n, 10n ** 12n);

/** Prices that with their taxes come to the prices asked, night by night. */
function netPricesOf(rules: readonly KnownRule[], stay: Stay): readonly Rational[] {
  const rooms = Rational.of(stay.rooms);
  const taxesOn = (prices: readonly Rational[]) =>
    nightSums(allTaxes(rules, stay, prices, false), stay).map((tax) => tax.over(rooms));
  const excessOf = (prices: readonly Rational[]) =>
    taxesOn(prices).map((tax, index) => at(prices, index).plus(tax).minus(at(stay.prices, index)));
  let prices = stay.prices;
  for (let step = 0; step < newtonStepsMax; step++) {
    const excess = excessOf(prices);
    if (excess.every((one, index) => isMet(one, at(prices, index)))) return requireAboveZero(prices);
    const nudged = excessOf(prices.map((price) => price.plus(nudge)));
    prices = prices.map((price, index) => {
      const slope = at(nudged, index).minus(at(excess, index)).over(nudge);
      const next = slope.isZero || slope.isNegative ? price : price.minus(at(excess, index).over(slope));
      if (next.isNegative) return Rational.zero;
      return next.d > fractionMax ? next.roundTo(finest, "half_up") : next;
    });
  }
  if (excessOf(prices).every((one, index) => isMet(one, at(prices, index)))) return requireAboveZero(prices);
  // A price at which a tariff jumps has no exact answer: the highest net price that does not come to more.
  let low: readonly Rational[] = stay.prices.map(() => Rational.zero);
  let high = stay.prices;
  for (let step = 0; step < bisectionsMax; step++) {
    const middle = low.map((one, index) => one.plus(at(high, index)).over(Rational.of(2)));
    const excess = excessOf(middle);
    const isOver = (index: number) => at(excess, index).compare(Rational.zero) > 0;
    const [below, above] = [low, high];
    low = middle.map((one, index) => (isOver(index) ? at(below, index) : one));
    high = middle.map((one, index) => (isOver(index) ? one : at(above, index)));
  }
  return requireAboveZero(low.map((one) => one.roundTo(Rational.of(1n, 10_000n), "half_up")));
}

/** Exactly; or, for a price with more digits than anybody's, as near as makes no difference. */
function isMet(excess: Rational, price: Rational): boolean {
  if (excess.isZero || price.d < exactMax) return excess.isZero;
  const distance = excess.isNegative ? Rational.zero.minus(excess) : excess;
  return distance.compare(nearEnough) < 0;
}

const at = (values: readonly Rational[], index: number): Rational => values[index] ?? Rational.zero;

function requireAboveZero(prices: readonly Rational[]): readonly Rational[] {
  if (prices.every((price) => price.isZero || price.isNegative)) {
    throw new CalculationProblem("invalid", "Expected more than the taxes that it includes", "nightly_rate");
  }
  return prices;
}
