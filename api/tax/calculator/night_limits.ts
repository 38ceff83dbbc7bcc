/** What the law does to an amount once it is there: falling nights, offset, floor and cap. */
import type { Terms } from "../rules/ruleset.ts";
import type { Stay } from "./calculation_request.ts";
import { Rational, smallerOf, sumOf } from "./numbers/rational.ts";
import { factorOf } from "./person_shares.ts";
import { type MoneyReader, type NightTax, type PersonShares, type Surroundings, totalOf } from "./rule_tax.ts";

export function applyNightBands(nights: readonly NightTax[], terms: Terms): void {
  for (const night of nights) {
    const band = terms.nights?.bands?.find(
      ({ from, to }) => night.index + 1 >= from && (to === undefined || night.index + 1 <= to),
    );
    if (band) scaleTo(night, night.total.times(factorOf(band.factor)));
  }
}

export function applyOffset(nights: readonly NightTax[], { offset_by }: Terms, around: Surroundings): void {
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
export function applyBound(
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
