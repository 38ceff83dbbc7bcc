/** What another law makes of a booked stay, and why: pure. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { CalculationAnswer } from "../calculator/calculation_answer.ts";
import type { SlotReport } from "../calculator/completeness.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational } from "../calculator/numbers/rational.ts";

export const recheckCauses = [
  "new_version",
  "assumption_confirmed",
  "assumption_replaced",
  "lapsed",
  "slot_discovered",
  "not_calculable",
] as const;

const nullable = (description: string) => Type.Unsafe<string | null>({ type: ["string", "null"], description });

export const RecheckRow = named(
  "RecheckedBooking",
  Type.Object({
    booking_id: Type.String(),
    external_reference: nullable("the booking's"),
    jurisdiction_code: Type.String(),
    stay_date: Type.String(),
    checkout_date: Type.String(),
    currency: Type.String(),
    stored_tax: Type.String({ description: "by the rules that it was booked under" }),
    tax_now: nullable("by today's; null where these cannot calculate it"),
    delta: nullable("tax_now less stored_tax"),
    cause: oneOf(recheckCauses),
    rule_ids: Type.Array(Type.String(), { description: "whose tax changes" }),
    note: nullable("why it cannot be calculated"),
  }),
  {
    stay_date: "the day of arrival",
    checkout_date: "the day of departure",
    cause: "why the tax would change",
  },
);
export type RecheckRow = Static<typeof RecheckRow>;

export type LawDifference = Pick<RecheckRow, "tax_now" | "delta" | "cause" | "rule_ids">;

/** What `after` changes of `before`, two answers to one stay; undefined where nothing that matters does. */
export function lawDifference(before: CalculationAnswer, after: CalculationAnswer): LawDifference | undefined {
  const [stored, now] = [before, after].map((answer) => Rational.parse(answer.tax_breakdown.total_tax));
  const delta = (now as Rational).minus(stored as Rational);
  const rule_ids = changedRules(before, after);
  const cause = causeOf(before, after, rule_ids, delta.isZero);
  if (delta.isZero && rule_ids.length === 0 && cause === "new_version") return undefined;
  const tax_now = after.tax_breakdown.total_tax;
  return { tax_now, delta: delta.toFixed(minorDigitsOf(after.currency)), cause, rule_ids };
}

/** Rules whose tax on the stay is another one. */
function changedRules(before: CalculationAnswer, after: CalculationAnswer): string[] {
  const [old, young] = [before, after].map(amountsByRule) as [Map<string, Rational>, Map<string, Rational>];
  const ids = new Set([...old.keys(), ...young.keys()]);
  return [...ids].filter((id) => (old.get(id) ?? Rational.zero).compare(young.get(id) ?? Rational.zero) !== 0).sort();
}

function amountsByRule({ tax_breakdown }: CalculationAnswer): Map<string, Rational> {
  const amounts = new Map<string, Rational>();
  for (const { rule_id, tax_amount } of tax_breakdown.components) {
    amounts.set(rule_id, (amounts.get(rule_id) ?? Rational.zero).plus(Rational.parse(tax_amount)));
  }
  return amounts;
}

function causeOf(
  before: CalculationAnswer,
  after: CalculationAnswer,
  changed: readonly string[],
  isSameTax: boolean,
): RecheckRow["cause"] {
  // What was booked before completeness was kept has none.
  const old = new Map(
    ((before as Partial<CalculationAnswer>).completeness?.slots ?? []).map((slot) => [keyOf(slot), slot]),
  );
  const moves = after.completeness.slots.flatMap((slot) => {
    const was = old.get(keyOf(slot));
    return was ? [{ was: was.state, is: slot.state, rule_ids: slot.rule_ids }] : [];
  });
  if (moves.some(({ was, is }) => is === "lapsed" && was !== "lapsed")) return "lapsed";
  const isHeld = (state: SlotReport["state"]) => state === "known" || state === "reported";
  if (moves.some(({ was, is }) => was === "assumed_continues" && isHeld(is))) {
    return isSameTax ? "assumption_confirmed" : "assumption_replaced";
  }
  const wasUnknown = moves.filter(({ was, is }) => was === "unknown" && isHeld(is));
  if (wasUnknown.some(({ rule_ids }) => rule_ids.some((id) => changed.includes(id)))) return "slot_discovered";
  return "new_version";
}

const keyOf = ({ level, kind, jurisdiction_code }: SlotReport) => `${level} ${kind} ${jurisdiction_code}`;
