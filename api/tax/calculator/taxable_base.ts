/** What a tax is taken of: the parts of the price that count, with and without other taxes. */
import type { PricePart } from "../rules/rule.ts";
import { joinsBaseOf, type KnownRule, type Terms } from "../rules/ruleset.ts";
import { Rational, sumOf } from "./numbers/rational.ts";
import { hundredth, type MoneyReader, type RuleTax, type Surroundings } from "./rule_tax.ts";

const parts = ["breakfast", "cleaning", "service_charge"] as const satisfies readonly PricePart[];

/** The taxable price of a night for all rooms. */
export function baseOf(
  rule: KnownRule,
  terms: Terms,
  around: Surroundings,
  index: number,
  money: MoneyReader,
): Rational {
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
