/** Who pays how much of a tax by the person. */
import type { Terms } from "../rules/ruleset.ts";
import { adultAge, type GuestAge, type Stay } from "./calculation_request.ts";
import { Rational } from "./numbers/rational.ts";
import type { MoneyReader, PersonShares } from "./rule_tax.ts";

export function personShares(terms: Terms, stay: Stay, money: MoneyReader): PersonShares {
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
  return {
    slot: `persons${agesText(min_age, max_age)}`,
    factor: factorOf(factor),
    flat: flat === undefined ? undefined : money(flat),
  };
}

function agesText(min: number | undefined, max: number | undefined): string {
  if (max === undefined) return min ? ` aged ${min} and over` : "";
  return min ? ` aged ${min} to ${max}` : ` aged up to ${max}`;
}

export function factorOf(factor: string | { n: number; d: number } | undefined): Rational {
  if (factor === undefined) return Rational.one;
  return typeof factor === "string" ? Rational.parse(factor) : Rational.of(factor.n, factor.d);
}
