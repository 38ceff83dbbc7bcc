/**
 * What one rule charges, night by night: base, amount, persons, offset, floor, cap and rounding, in
 * this order. Exact: nothing is rounded but where the rule says so.
 */
import type { Bands, RateAmount } from "../rules/rule.ts";
import type { KnownRule, Terms } from "../rules/ruleset.ts";
import type { Stay } from "./calculation_request.ts";
import { applyBound, applyNightBands, applyOffset } from "./night_limits.ts";
import { Rational, smallerOf, sumOf } from "./numbers/rational.ts";
import { roundLine, roundParts } from "./numbers/tax_rounding.ts";
import { personShares } from "./person_shares.ts";
import {
  type AppliedRate,
  type Charge,
  hundredth,
  type MoneyReader,
  moneyReader,
  type NightTax,
  type PersonShares,
  type RuleTax,
  type SegmentTax,
  type Surroundings,
  totalOf,
} from "./rule_tax.ts";
import { type Exemption, type Segment, segmentsOf } from "./segments.ts";
import { baseOf } from "./taxable_base.ts";

export function taxOf(rule: KnownRule, around: Surroundings): RuleTax {
  const { segments, skipped } = segmentsOf(rule, around.stay);
  const computed = segments.map((segment) => segmentTax(rule, segment, around));
  if (around.rounds)
    for (const version of new Set(segments.map((one) => one.version))) {
      roundLine(
        computed.filter((one) => one.segment.version === version),
        around.stay.currency,
      );
    }
  const totals = around.stay.dates.map(() => Rational.zero);
  for (const { nights } of computed) {
    for (const { index, total } of nights) totals[index] = (totals[index] ?? Rational.zero).plus(total);
  }
  return { rule, segments: computed, skipped, totals };
}

function segmentTax(rule: KnownRule, segment: Segment, around: Surroundings): SegmentTax {
  const { terms } = segment;
  const { stay } = around;
  const money = moneyReader(rule, terms, stay);
  const persons = terms.unit?.startsWith("person") ? personShares(terms, stay, money) : undefined;
  const bases = new Map(
    [...segment.taxed, ...segment.exempt.map(({ index }) => index)].map((index) => [
      index,
      baseOf(rule, terms, around, index, money),
    ]),
  );
  const nights = terms.unit?.endsWith("stay")
    ? stayCharges(segment, around, bases, persons, money)
    : segment.taxed.map((index) => nightCharges(segment, around, bases, index, persons, money));
  applyNightBands(nights, terms);
  applyOffset(nights, terms, around);
  applyBound(nights, terms, "floor", stay, persons, money);
  applyBound(nights, terms, "cap", stay, persons, money);
  for (const night of nights) night.unrounded = night.total;
  if (around.rounds) roundParts(nights, terms, stay.currency);
  const exempt = segment.exempt.map(({ index, exemption }) => {
    const [rate = rateShown(terms.amount)] = nights.map((night) => night.rate);
    return { index, rate, charges: [], total: Rational.zero, unrounded: Rational.zero, base: undefined, exemption };
  });
  return { segment, nights: [...nights, ...exempt].sort((a, b) => a.index - b.index), persons };
}

// Amount

function nightCharges(
  segment: Segment,
  around: Surroundings,
  bases: ReadonlyMap<number, Rational>,
  index: number,
  persons: PersonShares | undefined,
  money: MoneyReader,
): NightTax {
  const { terms } = segment;
  const { stay } = around;
  const { amount } = terms;
  const base = bases.get(index) ?? Rational.zero;
  if (amount?.percent_of_tax) return surcharge(amount.percent_of_tax, around, index);
  const exemption = belowThreshold(terms, (key) => priceFor(key, terms, stay, bases, [index], persons), money);
  const rate = rateFor(amount ?? {}, (key) => priceFor(key, terms, stay, bases, [index], persons), money);
  const charges = exemption ? [] : chargesFor(rate, base, terms, stay, persons);
  return {
    index,
    rate: rate.shown,
    charges,
    total: totalOf(charges),
    unrounded: Rational.zero,
    base: rate.of ? base : undefined,
    exemption,
  };
}

/** A tax by the stay: computed once over all its nights; its total is spread over them as the base is. */
function stayCharges(
  segment: Segment,
  around: Surroundings,
  bases: ReadonlyMap<number, Rational>,
  persons: PersonShares | undefined,
  money: MoneyReader,
): NightTax[] {
  const { terms, taxed } = segment;
  const [first] = taxed;
  if (first === undefined) return [];
  const { stay } = around;
  const priceOf = (key: Bands["key"]) => priceFor(key, terms, stay, bases, taxed, persons);
  const base = sumOf(taxed.map((index) => bases.get(index) ?? Rational.zero));
  const exemption = belowThreshold(terms, priceOf, money);
  const rate = rateFor(terms.amount ?? {}, priceOf, money);
  const charges = exemption ? [] : chargesFor(rate, base, terms, stay, persons);
  const total = totalOf(charges);
  return taxed.map((index) => {
    const own = bases.get(index) ?? Rational.zero;
    const share = base.isZero ? Rational.of(1, taxed.length) : own.over(base);
    return {
      index,
      rate: rate.shown,
      charges: index === first ? charges : [],
      total: total.times(share),
      unrounded: Rational.zero,
      base: rate.of ? own : undefined,
      exemption,
    };
  });
}

/** A percentage of what other rules charge on a night, unit by unit. */
function surcharge(
  { of, percent }: { of: readonly string[]; percent: string },
  around: Surroundings,
  index: number,
): NightTax {
  const nights = of
    .flatMap((id) => around.taxes.get(id)?.segments ?? [])
    .flatMap((one) => one.nights.filter((night) => night.index === index));
  const share = hundredth(percent);
  const charges = nights.flatMap((night) =>
    night.charges.map((charge) => ({ ...charge, amount: charge.amount.times(share) })),
  );
  const taxed = sumOf(nights.map((night) => night.total));
  return {
    index,
    rate: { type: "percent_of_tax", value: percent },
    charges,
    total: taxed.times(share),
    unrounded: Rational.zero,
    base: taxed,
    exemption: nights.find((night) => night.exemption)?.exemption,
  };
}

interface Rate {
  shown: AppliedRate;
  flat: Rational;
  /** Share of the base. */
  of: Rational | undefined;
}

function rateFor(amount: RateAmount, priceOf: (key: Bands["key"]) => Rational, money: MoneyReader): Rate {
  if (amount.bands) return bandRate(amount.bands, priceOf(amount.bands.key), money);
  return plainRate(amount, money);
}

function plainRate({ flat, percent, fraction }: RateAmount, money: MoneyReader): Rate {
  if (percent !== undefined) {
    return { shown: { type: "percent", value: percent }, flat: Rational.zero, of: hundredth(percent) };
  }
  if (fraction) {
    const value = `${fraction.n}/${fraction.d}`;
    return { shown: { type: "fraction", value }, flat: Rational.zero, of: Rational.of(fraction.n, fraction.d) };
  }
  const value = flat ?? "0";
  return { shown: { type: "flat", value }, flat: money(value), of: undefined };
}

function bandRate(bands: Bands, key: Rational, money: MoneyReader): Rate {
  const { rows, mode, boundary = "at_least", step } = bands;
  const inOwnCurrency = (amount: Rational) => (amount.isZero ? amount : amount.over(money("1")));
  const isReached = (from: string) => {
    const difference = key.compare(money(from));
    return boundary === "at_least" ? difference >= 0 : difference > 0;
  };
  if (mode === "marginal") {
    let total = Rational.zero;
    for (const [index, row] of rows.entries()) {
      const from = money(row.from);
      if (key.compare(from) <= 0) break;
      const next = rows[index + 1];
      const part = (next ? smallerOf(key, money(next.from)) : key).minus(from);
      const rate = plainRate(row, money);
      total = total.plus(rate.of ? part.times(rate.of) : rate.flat);
    }
    return { shown: { type: "flat", value: inOwnCurrency(total).toText(6) }, flat: total, of: undefined };
  }
  const row = rows.findLast((one, index) => index === 0 || isReached(one.from)) ?? {};
  const rate = plainRate(row, money);
  if (!step || key.compare(money(step.above)) <= 0) return rate;
  const steps = key.minus(money(step.above)).over(money(step.every)).roundTo(Rational.one, "up");
  const flat = rate.flat.plus(steps.times(money(step.add)));
  return { ...rate, flat, shown: { type: "flat", value: inOwnCurrency(flat).toText() } };
}

function rateShown(amount: RateAmount | undefined): AppliedRate {
  if (amount?.percent_of_tax) return { type: "percent_of_tax", value: amount.percent_of_tax.percent };
  if (amount?.percent) return { type: "percent", value: amount.percent };
  if (amount?.fraction) return { type: "fraction", value: `${amount.fraction.n}/${amount.fraction.d}` };
  return { type: "flat", value: amount?.flat ?? "0" };
}

function priceFor(
  key: Bands["key"],
  terms: Terms,
  stay: Stay,
  bases: ReadonlyMap<number, Rational>,
  indexes: readonly number[],
  persons: PersonShares | undefined,
): Rational {
  const sum = (of: Iterable<number>) => sumOf([...of].map((index) => bases.get(index) ?? Rational.zero));
  const [nights, rooms] = [Rational.of(Math.max(indexes.length, 1)), Rational.of(stay.rooms)];
  switch (key) {
    case "price_per_room_night":
      return sum(indexes).over(rooms).over(nights);
    case "price_per_person_night":
      return sum(indexes)
        .over(divisorOf(terms, stay, persons))
        .over(nights);
    case "stay_price_per_room":
      return sum(bases.keys()).over(rooms);
    case "stay_price_per_person":
      return sum(bases.keys()).over(divisorOf(terms, stay, persons));
    case "declared_tariff":
      return stay.declaredTariff ?? sum(indexes).over(rooms).over(nights);
  }
}

function divisorOf(terms: Terms, stay: Stay, persons: PersonShares | undefined): Rational {
  const by = terms.base?.divide_by ?? "guests";
  const count = by === "adults" ? stay.adults : by === "payers" ? (persons?.paying ?? 0) : stay.ages.length;
  return Rational.of(Math.max(count, 1));
}

function belowThreshold(
  { threshold }: Terms,
  priceOf: (key: Bands["key"]) => Rational,
  money: MoneyReader,
): Exemption | undefined {
  if (!threshold || priceOf(threshold.key).compare(money(threshold.min)) >= 0) return undefined;
  return { code: "below_threshold", reason: `Prices under ${threshold.min} are not taxed` };
}

function chargesFor(rate: Rate, base: Rational, terms: Terms, stay: Stay, persons: PersonShares | undefined): Charge[] {
  if (persons) {
    const each = rate.of ? base.times(rate.of).over(divisorOf(terms, stay, persons)) : rate.flat;
    return persons.shares.map(({ slot, factor, flat, count }) => ({
      amount: flat ?? each.times(factor),
      quantity: count,
      slot,
    }));
  }
  const quantity = terms.unit === "stay" ? 1 : stay.rooms;
  const amount = rate.of ? base.times(rate.of).over(Rational.of(quantity)) : rate.flat;
  return [
    { amount, quantity, slot: terms.unit === "stay" ? "stay" : terms.unit?.startsWith("unit") ? "units" : "rooms" },
  ];
}
