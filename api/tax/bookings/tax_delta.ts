/**
 * What a change adds to a booking's taxes or takes away, by component. Over a booking's life these
 * differences sum up to its taxes: each is taken between two answers, none is computed by itself.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import type { CalculationAnswer, TaxComponent } from "../calculator/calculation_answer.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";

const Difference = Type.String({ description: "after less before; negative where tax is given back" });

export const TaxDelta = named(
  "TaxDelta",
  Type.Object({
    currency: Type.String(),
    total_tax: Difference,
    components: Type.Array(
      named(
        "TaxChange",
        Type.Object({
          rule_id: Type.String(),
          version: Type.Integer(),
          name: Type.String(),
          kind: Type.String(),
          category_code: Type.String(),
          authority: Type.String(),
          jurisdiction_code: Type.String(),
          collector: Type.String(),
          before: Type.String(),
          after: Type.String(),
          tax_amount: Difference,
          taxable_amount: Difference,
        }),
        {
          rule_id: "the rule that it follows",
          version: "the rule's version",
          name: "what the tax is called",
          kind: "what kind of tax",
          category_code: "what kind of VAT, fee or levy more exactly",
          authority: "who levies it",
          jurisdiction_code: "the place that levies it",
          collector: "who takes it from the guest and owes it",
          before: "the tax before",
          after: "the tax now",
          tax_amount: "by how much it changed",
          taxable_amount: "by how much what it is taken of changed",
        },
      ),
    ),
  }),
  {
    total_tax: "by how much all taxes together changed",
    components: "the taxes that changed",
  },
);
export type TaxDelta = Static<typeof TaxDelta>;

/** From `before`, or from nothing, to `after`. Both are of one currency. */
export function taxDelta(before: CalculationAnswer | undefined, after: CalculationAnswer): TaxDelta {
  const { currency } = after;
  const digits = minorDigitsOf(currency);
  const [old, current] = [before?.tax_breakdown.components ?? [], after.tax_breakdown.components].map(byLine) as [
    Map<string, TaxComponent>,
    Map<string, TaxComponent>,
  ];
  const lines = [...new Set([...old.keys(), ...current.keys()])].map((line) => {
    const [was, is] = [old.get(line), current.get(line)];
    const { rule_id, version, name, kind, category_code, authority, jurisdiction_code, collector } = (is ??
      was) as TaxComponent;
    const [taxWas, taxIs] = [amountOf(was?.tax_amount), amountOf(is?.tax_amount)];
    const taxable = amountOf(is?.taxable_amount).minus(amountOf(was?.taxable_amount));
    return {
      tax: taxIs.minus(taxWas),
      component: {
        ...{ rule_id, version, name, kind, category_code, authority, jurisdiction_code, collector },
        before: taxWas.toFixed(digits),
        after: taxIs.toFixed(digits),
        tax_amount: taxIs.minus(taxWas).toFixed(digits),
        taxable_amount: taxable.toFixed(digits),
      },
    };
  });
  return {
    currency,
    total_tax: sumOf(lines.map(({ tax }) => tax)).toFixed(digits),
    components: lines.map(({ component }) => component),
  };
}

/** The answer of a stay that is not to take place: nothing is due. */
export function nothingDue(answer: CalculationAnswer): CalculationAnswer {
  const zero = Rational.zero.toFixed(minorDigitsOf(answer.currency));
  return {
    ...answer,
    tax_breakdown: { components: [], total_tax: zero, effective_rate: "0" },
    totals_by_kind: Object.fromEntries(Object.keys(answer.totals_by_kind).map((kind) => [kind, zero])),
    total_without_tax: zero,
    total_with_tax: zero,
    rules_applied: [],
    missing_inputs: [],
  };
}

/** A version of a rule has one component in an answer. Who collects may change with the channel. */
const byLine = (components: readonly TaxComponent[]) =>
  new Map(components.map((one) => [`${one.rule_id}/${one.version}/${one.collector}`, one]));

const amountOf = (text: string | null | undefined) => (text ? Rational.parse(text) : Rational.zero);
