/**
 * What one rule charges, night by night: base, amount, persons, offset, floor, cap and rounding, in
 * this order. Exact: nothing is rounded but where the rule says so.
 */
import type { Bands, PricePart, RateAmount } from "../rules/rule.ts";
import { joinsBaseOf, type KnownRule, type Terms } from "../rules/ruleset.ts";
import { adultAge, CalculationProblem, type GuestAge, type Stay } from "./calculation_request.ts";
import { minorDigitsOf } from "./currency.ts";
import { Rational, smallerOf, sumOf } from "./rational.ts";
import { type Exemption, type Segment, segmentsOf } from "./segments.ts";

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

/** Reads an amount of the rule in the currency of the stay. */
type MoneyReader = (text: string) => Rational;

function moneyReader(rule: KnownRule, terms: Terms, stay: Stay): MoneyReader {
  return (text) => {
    const amount = Rational.parse(text);
    const currency = terms.currency ?? stay.currency;
    if (amount.isZero || currency === stay.currency) return amount;
    const factor = stay.exchangeFrom(currency);
    if (!factor) {
      throw new CalculationProblem(
        "currency_mismatch",
        `currency mismatch: ${rule.name} is set in ${currency}, the calculation is in ${stay.currency}; give fx {rate, source, date} or calculate in ${currency}`,
        "currency",
      );
    }
    return amount.times(factor);
  };
}

// Persons

export interface PersonShares {
  shares: { slot: string; factor: Rational; flat: Rational | undefined; count: number }[];
  paying: number;
  /** Ages that pay nothing, and how many guests have them. */
  exempt: number;
}

function personShares(terms: Terms, stay: Stay, money: MoneyReader): PersonShares {
  const shares = new Map<string, PersonShares["shares"][number]>();
  let exempt = 0;
  for (const age of stay.ages) {
    const share = shareOf(terms, age, money);
    if (!share || (share.factor.isZero && !share.flat)) exempt++;
    else {
      const entry = shares.get(share.slot) ?? { ...share, count: 0 };
      shares.set(share.slot, { ...entry, count: entry.count + 1 });
    }
  }
  return { shares: [...shares.values()], paying: stay.ages.length - exempt, exempt };
}

function shareOf({ persons }: Terms, age: GuestAge, money: MoneyReader) {
  if (!persons) return { slot: "persons", factor: Rational.one, flat: undefined };
  const years = age ?? adultAge;
  const band = persons.find(
    ({ min_age = 0, max_age = Number.POSITIVE_INFINITY }) => years >= min_age && years <= max_age,
  );
  if (!band) return undefined;
  const { min_age, max_age, factor, flat } = band;
  const slot =
    max_age === undefined ? (min_age ? `persons from ${min_age}` : "persons") : `persons ${min_age ?? 0} to ${max_age}`;
  return { slot, factor: factorOf(factor), flat: flat === undefined ? undefined : money(flat) };
}

function factorOf(factor: string | { n: number; d: number } | undefined): Rational {
  if (factor === undefined) return Rational.one;
  return typeof factor === "string" ? Rational.parse(factor) : Rational.of(factor.n, factor.d);
}

// Base

const parts = ["breakfast", "cleaning", "service_charge"] as const satisfies readonly PricePart[];

/** The taxable price of a night for all rooms. */
function baseOf(rule: KnownRule, terms: Terms, around: Surroundings, index: number, money: MoneyReader): Rational {
  const { stay } = around;
  const { includes, price, includes_tax, net_of, includes_self, deduct } = terms.base ?? {};
  const rooms = Rational.of(stay.rooms);
  const hasRoom = includes?.includes("room") ?? true;
  const isGross = price === "gross";
  let base = Rational.zero;
  if (hasRoom) {
    const night = (isGross && stay.priceIncludesTax ? stay.prices : around.netPrices)[index] ?? Rational.zero;
    base = night.times(rooms);
    if (isGross && !stay.priceIncludesTax) base = base.plus(around.generalTaxOnRoom()[index] ?? Rational.zero);
  }
  for (const part of parts) {
    const amount = stay.included[part];
    if (amount === undefined || amount === "unknown" || (includes?.includes(part) ?? true) === hasRoom) continue;
    base = hasRoom ? base.minus(amount.times(rooms)) : base.plus(amount.times(rooms));
  }
  for (const one of deduct ?? []) {
    if (one.if_included && stay.included[one.if_included] !== "unknown") continue;
    if (one.percent) base = base.minus(base.times(hundredth(one.percent)));
    if (one.amount) {
      base = base.minus(
        money(one.amount).times(Rational.of(one.per === "person_night" ? stay.ages.length : stay.rooms)),
      );
    }
  }
  if (base.isNegative) base = Rational.zero;
  for (const { rule: other, totals } of around.taxes.values()) {
    const joins = hasRoom && joinsBaseOf(rule, other) && !includes_tax?.includes(other.id);
    const tax = joins ? taxWithin(around.taxes.get(other.id), index) : (totals[index] ?? Rational.zero);
    if (joins || includes_tax?.includes(other.id)) base = base.plus(tax);
    if (net_of?.includes(other.id)) base = base.minus(tax);
  }
  if (includes_self && terms.amount?.percent) {
    // The levy is r of a total that holds it: of the rest it is r / (1 - r), so the total is the rest / (1 - r).
    base = base.over(Rational.one.minus(hundredth(terms.amount.percent)));
  }
  return base.isNegative ? Rational.zero : base;
}

/** What of a tax on one night stands in the base of VAT: the terms of that night decide. */
function taxWithin(tax: RuleTax | undefined, index: number): Rational {
  const inside = (tax?.segments ?? []).filter((one) => one.segment.terms.vat_treatment === "in_base_same_rate");
  return sumOf(
    inside.flatMap((one) => one.nights.filter((night) => night.index === index)).map((night) => night.total),
  );
}

const hundredth = (percent: string) => Rational.parse(percent).over(Rational.of(100));

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
    return { shown: { type: "flat", value: total.toText(6) }, flat: total, of: undefined };
  }
  const row = rows.findLast((one, index) => index === 0 || isReached(one.from)) ?? {};
  const rate = plainRate(row, money);
  if (!step || key.compare(money(step.above)) <= 0) return rate;
  const steps = key.minus(money(step.above)).over(money(step.every)).roundTo(Rational.one, "up");
  const flat = rate.flat.plus(steps.times(money(step.add)));
  return { ...rate, flat, shown: { type: "flat", value: flat.toText() } };
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

// After the amount

const totalOf = (charges: readonly Charge[]) =>
  sumOf(charges.map(({ amount, quantity }) => amount.times(Rational.of(quantity))));

function applyNightBands(nights: readonly NightTax[], terms: Terms): void {
  for (const night of nights) {
    const band = terms.nights?.bands?.find(
      ({ from, to }) => night.index + 1 >= from && (to === undefined || night.index + 1 <= to),
    );
    if (band) scaleTo(night, night.total.times(factorOf(band.factor)));
  }
}

function applyOffset(nights: readonly NightTax[], { offset_by }: Terms, around: Surroundings): void {
  if (!offset_by) return;
  for (const night of nights) {
    const taken = sumOf(offset_by.map((id) => around.taxes.get(id)?.totals[night.index] ?? Rational.zero));
    const rest = night.total.minus(taken);
    scaleTo(night, rest.isNegative ? Rational.zero : rest);
  }
}

/** Changes a night's total and each of its charges in proportion. */
function scaleTo(night: NightTax, total: Rational): void {
  const before = night.total;
  night.total = total;
  if (before.isZero) {
    const quantity = night.charges.reduce((sum, charge) => sum + charge.quantity, 0);
    if (quantity > 0) for (const charge of night.charges) charge.amount = total.over(Rational.of(quantity));
    return;
  }
  const factor = total.over(before);
  for (const charge of night.charges) charge.amount = charge.amount.times(factor);
}

/** Raises to the floor or lowers to the cap: each night's, or the sum of the stay's so far. */
function applyBound(
  nights: NightTax[],
  terms: Terms,
  which: "floor" | "cap",
  stay: Stay,
  persons: PersonShares | undefined,
  money: MoneyReader,
): void {
  const bound = terms[which];
  const taxed = nights.filter((night) => !night.exemption);
  if (!bound || taxed.length === 0) return;
  const amount = money(bound.amount);
  const things = bound.per.startsWith("person")
    ? (persons?.paying ?? stay.ages.length)
    : bound.per === "stay"
      ? 1
      : stay.rooms;
  const limit = amount.times(Rational.of(things));
  const exceeds = (value: Rational, than: Rational) =>
    which === "cap" ? value.compare(than) > 0 : value.compare(than) < 0;
  const isStayUnit = terms.unit?.endsWith("stay") ?? false;
  if (bound.per.endsWith("night") && !isStayUnit) {
    const own = bound.per === "person_night" && terms.unit === "person_night";
    for (const night of taxed) {
      if (own) {
        for (const charge of night.charges) if (exceeds(charge.amount, amount)) charge.amount = amount;
        night.total = totalOf(night.charges);
      } else if (exceeds(night.total, limit)) scaleTo(night, limit);
    }
    return;
  }
  const whole = bound.per.endsWith("night") ? limit.times(Rational.of(taxed.length)) : limit;
  if (which === "cap" && bound.per === "person_stay" && terms.unit === "person_night") {
    capEachPerson(taxed, amount);
    return;
  }
  const sum = sumOf(taxed.map((night) => night.total));
  if (!exceeds(sum, whole)) return;
  if (isStayUnit || which === "floor") {
    const quantity = Rational.of(taxed.length);
    for (const night of taxed) {
      const total = sum.isZero ? whole.over(quantity) : night.total.times(whole.over(sum));
      night.total = total;
    }
    rescaleCharges(taxed, whole);
    return;
  }
  let left = whole;
  for (const night of taxed) {
    if (night.total.compare(left) > 0) scaleTo(night, left);
    left = left.minus(night.total);
  }
}

/** Each person pays on from night to night until the cap is used up. */
function capEachPerson(nights: readonly NightTax[], cap: Rational): void {
  const left = new Map<string, Rational>();
  for (const night of nights) {
    for (const charge of night.charges) {
      const remaining = left.get(charge.slot) ?? cap;
      charge.amount = smallerOf(charge.amount, remaining);
      left.set(charge.slot, remaining.minus(charge.amount));
    }
    night.total = totalOf(night.charges);
  }
}

function rescaleCharges(nights: readonly NightTax[], whole: Rational): void {
  const charges = nights.flatMap((night) => night.charges);
  const before = totalOf(charges);
  const quantity = charges.reduce((sum, charge) => sum + charge.quantity, 0);
  for (const charge of charges) {
    charge.amount = before.isZero ? whole.over(Rational.of(quantity)) : charge.amount.times(whole.over(before));
  }
}

// Rounding

export function roundingOf(terms: Terms, currency: string) {
  const digits = minorDigitsOf(currency);
  const { mode = "half_up", increment, at = "line" } = terms.rounding ?? {};
  return {
    mode,
    increment: increment === undefined ? Rational.of(1n, 10n ** BigInt(digits)) : Rational.parse(increment),
    at: at === "stay" ? ("line" as const) : at,
  } as const;
}

function roundParts(nights: readonly NightTax[], terms: Terms, currency: string): void {
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
function roundLine(segments: readonly SegmentTax[], currency: string): void {
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
