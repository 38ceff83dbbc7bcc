/** The answer of a calculation: its schema, and how it is made from what was evaluated. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { jurisdictionTypes } from "../places/jurisdiction.ts";
import { classOn } from "../rules/evidence.ts";
import { ruleKinds } from "../rules/rule.ts";
import { type KnownVersion, needsCurrency, type PlaceRules, type Terms } from "../rules/ruleset.ts";
import type { Stay } from "./calculation_request.ts";
import { Completeness, coverageStatus, coverageStatuses, slotNotes, versionsInForce } from "./completeness.ts";
import type { Evaluation } from "./evaluation.ts";
import { conversionText, explanationOf, onTopText, rateText } from "./explanation.ts";
import { addDays, isWithin } from "./law/calendar.ts";
import type { MissingInput } from "./missing_inputs.ts";
import { minorDigitsOf } from "./numbers/currency.ts";
import { Rational, sumOf } from "./numbers/rational.ts";
import { roundingOf } from "./numbers/tax_rounding.ts";
import type { NightTax, RuleTax, SegmentTax } from "./rule_tax.ts";
import { anchorDate } from "./segments.ts";
import { IgnoredFields } from "./unknown_fields.ts";

const Money = Type.String({ description: "a decimal with the currency's digits" });
const nullable = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()]);

const ExemptionNote = named(
  "Exemption",
  Type.Object({
    code: Type.String(),
    reason: Type.String(),
    nights: Type.Optional(Type.Integer()),
    persons: Type.Optional(Type.Integer()),
  }),
  {
    code: "which one",
    reason: "why it applies",
    nights: "so many nights are exempt",
    persons: "so many persons are exempt",
  },
);

const Slice = named(
  "TaxSlice",
  Type.Object({
    from: Type.String({ description: "first night" }),
    to: Type.String({ description: "the day after the last night" }),
    nights: Type.Integer(),
    rate: Type.String(),
    amount: Money,
  }),
  {
    nights: "how many",
    rate: "as it is read",
    amount: "the tax of these nights",
  },
);

export const TaxComponent = named(
  "TaxComponent",
  Type.Object({
    rule_id: Type.String(),
    version: Type.Integer(),
    name: Type.String(),
    kind: oneOf(ruleKinds),
    category_code: Type.String(),
    authority: Type.String(),
    jurisdiction_code: Type.String(),
    unit: Type.String(),
    rate: named(
      "TaxRate",
      Type.Object({
        type: oneOf(["flat", "percent", "fraction", "percent_of_tax", "mixed"]),
        value: nullable(Type.String()),
        display: Type.String(),
      }),
      {
        type: "flat for an amount, percent of a price, fraction of a price, percent_of_tax of another tax, mixed where nights differ",
        value: "the figure; null where nights differ",
        display: "as it is read",
      },
    ),
    quantity: named(
      "TaxQuantity",
      Type.Object({ nights: Type.Integer(), persons: Type.Integer(), rooms: Type.Integer() }),
      {
        nights: "nights that are taxed",
        persons: "persons who are taxed",
        rooms: "rooms that are taxed",
      },
    ),
    taxable_amount: nullable(Money),
    tax_amount: Money,
    /** Only there where the law's amounts are in another currency than the request. */
    conversion: Type.Optional(
      Type.Object(
        {
          currency: Type.String(),
          amount: Type.String({ description: "the tax in that currency, before it was converted and rounded" }),
          rate: Type.String({ description: "units of the request's currency for one of that currency" }),
          source: Type.String({ description: "who says so" }),
          date: Type.String({ description: "the day that the rate is of" }),
        },
        { description: "from the currency that the law is written in, by the rate that the request gives" },
      ),
    ),
    exemptions: Type.Array(ExemptionNote),
    inclusive: Type.Boolean({ description: "in the price as asked; what of it is not, the explanation says" }),
    collector: Type.String(),
    vat_treatment: Type.String(),
    on_cancellation: nullable(Type.String()),
    evidence: Type.Array(Type.String()),
    status: oneOf(["verified", "reported", "announced"]),
    slices: Type.Array(Slice),
    rounding: named(
      "TaxRounding",
      Type.Object({ mode: Type.String(), increment: Type.String(), at: Type.String(), unrounded: Type.String() }),
      {
        mode: "which way",
        increment: "to multiples of this",
        at: "whether each line or each night is rounded",
        unrounded: "the tax before",
      },
    ),
    explanation: Type.String(),
    source: named(
      "LawSource",
      Type.Object({
        title: Type.String(),
        url: Type.String(),
        checked_on: Type.String({ description: "the day on which somebody read it" }),
        kind: Type.String({ description: "law, official and official_copy are primary, the others secondary" }),
        quote: nullable(Type.String({ description: "the words that carry the figure" })),
      }),
      { title: "what it is called", url: "where it is read", quote: "the words that carry the figure" },
    ),
    confidence: oneOf(["high", "medium", "low"]),
    assumed: Type.Boolean({ description: "of a tariff that ended and is taken to go on" }),
  }),
  {
    rule_id: "the rule that it follows",
    version: "the rule's version, which changes with the law",
    name: "what the tax is called",
    kind: "what kind of tax",
    category_code: "what kind of VAT, fee or levy more exactly",
    authority: "who levies it",
    jurisdiction_code: "the place that levies it",
    unit: "what it is charged for, such as a person and night",
    rate: "how much for each",
    quantity: "what was counted",
    taxable_amount: "what a percentage was taken of; null of flat taxes",
    tax_amount: "the tax",
    exemptions: "what was exempt, and why",
    collector: "who takes the tax from the guest and owes it",
    vat_treatment: "whether VAT is charged on it",
    on_cancellation: "what becomes of it when the stay is canceled; null where the law says nothing",
    evidence: "papers that the law asks for",
    status: "how sure the law behind it is",
    slices: "the nights by rate",
    rounding: "how it was rounded",
    explanation: "how it was reckoned, in words",
    source: "where the law is read",
    confidence: "by its source",
  },
);
export type TaxComponent = Static<typeof TaxComponent>;

export const CalculationAnswer = named(
  "Calculation",
  Type.Object({
    jurisdiction: named(
      "Place",
      Type.Object({
        code: Type.String(),
        name: Type.String(),
        type: oneOf(jurisdictionTypes),
        stack: Type.Array(Type.String(), { description: "the place and those above it, itself first" }),
      }),
      { code: "its code", name: "its name in English", type: "what kind of place it is" },
    ),
    currency: Type.String(),
    tax_breakdown: named(
      "TaxBreakdown",
      Type.Object({
        components: Type.Array(TaxComponent),
        total_tax: Money,
        effective_rate: Type.String({ description: "share of total_without_tax" }),
      }),
      { components: "one for each tax" },
    ),
    totals_by_kind: Type.Record(Type.String(), Money),
    total_without_tax: Money,
    total_with_tax: Type.String({
      description:
        "what the guest pays: total_without_tax and all taxes. More than a price that includes tax where a tax stands on top of it (inclusive: false)",
    }),
    rules_applied: Type.Array(
      named(
        "RuleOutcome",
        Type.Object({
          rule_id: Type.String(),
          version: Type.Union([Type.Integer(), Type.Null()]),
          outcome: oneOf(["applied", "exempted", "skipped"]),
          reason: Type.String(),
        }),
        {
          rule_id: "the rule",
          version: "its version; null where none was in force",
          outcome: "what came of it",
          reason: "why",
        },
      ),
    ),
    coverage: named(
      "PlaceCoverage",
      Type.Object({
        status: oneOf(coverageStatuses),
        as_of: nullable(Type.String()),
        notes: Type.Array(Type.String()),
      }),
      {
        status: "how much of the law is known here",
        as_of: "the day on which the rules were last read; null where there are none",
        notes: "what a reader should know",
      },
    ),
    completeness: Completeness,
    missing_inputs: Type.Array(
      named(
        "MissingInput",
        Type.Object({
          field: Type.String(),
          assumed: nullable(
            Type.String({ description: "what is taken for it; null: none of those that the law names" }),
          ),
          min_tax: Money,
          max_tax: Money,
        }),
        {
          field: "its name",
          assumed: "what is taken for it; null: none of those that the law names",
          min_tax: "the tax with the value that makes it least",
          max_tax: "the tax with the value that makes it most",
        },
      ),
    ),
    ruleset_hash: Type.String(),
    ignored_fields: IgnoredFields,
  }),
  {
    jurisdiction: "the place",
    tax_breakdown: "the taxes one by one",
    totals_by_kind: "tax by kind",
    total_without_tax: "price of the stay without these taxes",
    rules_applied: "every rule that was looked at, and what came of it",
    coverage: "what is known of the place",
    missing_inputs: "fields that were not given and would change the tax",
    ruleset_hash: "names the rules that it was reckoned by",
  },
);
export type CalculationAnswer = Static<typeof CalculationAnswer>;

export function answerFrom(
  place: PlaceRules,
  stay: Stay,
  { taxes, inside }: Evaluation,
  missing: readonly MissingInput[],
  completeness: Completeness,
): CalculationAnswer {
  const digits = minorDigitsOf(stay.currency);
  const money = (amount: Rational) => amount.toFixed(digits);
  const components = taxes.flatMap((tax) => {
    const contained = linesOf(inside.get(tax.rule.id));
    return linesOf(tax).map((line) => componentFrom(tax, line, stay, withinOf(line, contained)));
  });
  const amounts = components.map((component) => Rational.parse(component.tax_amount));
  const total = sumOf(amounts);
  const kinds = new Map<string, Rational>([["accommodation", Rational.zero]]);
  for (const [index, { kind }] of components.entries()) {
    kinds.set(kind, (kinds.get(kind) ?? Rational.zero).plus(amounts[index] ?? Rational.zero));
  }
  const rooms = Rational.of(stay.rooms);
  const prices = sumOf(stay.prices).times(rooms);
  const contained = [...inside.values()].flatMap(linesOf).map((line) => printed(line.total, stay));
  const withoutTax = prices.minus(sumOf(contained));
  const withTax = withoutTax.plus(total);
  return {
    jurisdiction: { ...place.place, stack: [...place.place.stack] },
    currency: stay.currency,
    tax_breakdown: {
      components,
      total_tax: money(total),
      effective_rate: withoutTax.isZero ? "0" : total.over(withoutTax).toText(6),
    },
    totals_by_kind: Object.fromEntries([...kinds].map(([kind, amount]) => [kind, money(amount)])),
    total_without_tax: money(withoutTax),
    total_with_tax: money(withTax),
    rules_applied: taxes.flatMap(outcomesOf),
    coverage: coverageOf(place, stay, completeness),
    completeness,
    missing_inputs: missing.map(({ field, assumed, min, max }) => ({
      field,
      assumed,
      min_tax: money(min),
      max_tax: money(max),
    })),
    ruleset_hash: place.hash,
  };
}

/** What one version of a rule charges: one component. */
interface Line {
  version: KnownVersion;
  segments: readonly SegmentTax[];
  nights: readonly { night: NightTax; terms: Terms }[];
  total: Rational;
}

function linesOf(tax: RuleTax | undefined): Line[] {
  const segments = tax?.segments ?? [];
  const versions = [...new Set(segments.map((one) => one.segment.version))];
  return versions.map((version) => {
    const own = segments.filter((one) => one.segment.version === version);
    const nights = own
      .flatMap((one) => one.nights.map((night) => ({ night, terms: one.segment.terms })))
      .sort((a, b) => a.night.index - b.night.index);
    return { version, segments: own, nights, total: sumOf(nights.map(({ night }) => night.total)) };
  });
}

/** An amount as the answer has it. */
const printed = (amount: Rational, stay: Stay) => Rational.parse(amount.toFixed(minorDigitsOf(stay.currency)));

/** What of a line is within the price as asked; undefined where none of it is, as of a tax that stands on top. */
function withinOf(line: Line, contained: readonly Line[]): Rational | undefined {
  return contained.find(({ version }) => version === line.version)?.total;
}

function componentFrom(tax: RuleTax, line: Line, stay: Stay, within: Rational | undefined): TaxComponent {
  const digits = minorDigitsOf(stay.currency);
  const { rule } = tax;
  const { version, nights, segments } = line;
  const terms = (segments[0] as SegmentTax).segment.terms;
  const taxed = nights.filter(({ night }) => !night.exemption);
  const bases = taxed.flatMap(({ night }) => night.base ?? []);
  const persons = Math.max(0, ...segments.map((one) => one.persons?.paying ?? stay.ages.length));
  const rounding = roundingOf(terms, stay.currency);
  const exemptions = exemptionNotes(line);
  const unrounded = sumOf(nights.map(({ night }) => night.unrounded));
  const conversion = conversionOf(terms, stay, unrounded);
  return {
    rule_id: rule.id,
    version: version.version,
    name: rule.name,
    kind: rule.kind,
    category_code: rule.categoryCode,
    authority: rule.authority,
    jurisdiction_code: rule.jurisdiction,
    unit: terms.unit ?? "as_taxed",
    rate: rateOf(line, terms),
    quantity: { nights: taxed.length, persons, rooms: stay.rooms },
    taxable_amount: bases.length > 0 ? sumOf(bases).toFixed(digits) : null,
    tax_amount: line.total.toFixed(digits),
    ...(conversion && { conversion }),
    exemptions,
    inclusive: within !== undefined,
    collector: terms.collector ?? "property",
    vat_treatment: terms.vat_treatment ?? "outside",
    on_cancellation: terms.on_cancellation ?? null,
    evidence: terms.evidence ?? [],
    status: statusOn(version, stay.today),
    slices: slicesOf(line, stay, digits),
    rounding: {
      mode: rounding.mode,
      increment: rounding.increment.toText(),
      at: rounding.at,
      unrounded: unrounded.toText(8),
    },
    explanation: [
      explanationOf(line.segments, stay, line.total.toFixed(digits), exemptions),
      ...(conversion ? [conversionText(conversion, stay.currency)] : []),
      ...onTopText(printed(line.total, stay), within && printed(within, stay), stay),
    ].join(" "),
    source: sourceOf(version),
    confidence: confidences[classOn(stay.today, evidenceOf(version), version.reviewBy)],
    assumed: isAssumed(version, nights, stay),
  };
}

const confidences = { A: "high", B: "medium", C: "low" } as const;

/** Of rules that bookings froze before evidence was kept, what was typed is the best that is known. */
const evidenceOf = ({ evidence, status }: KnownVersion) => evidence ?? (status === "verified" ? "B" : "C");

function statusOn({ status, from }: KnownVersion, today: string): TaxComponent["status"] {
  return from > today ? "announced" : status;
}

function sourceOf({ source, quotes = [] }: KnownVersion): TaxComponent["source"] {
  const { title, url, checked_on, kind } = source;
  return { title, url, checked_on, kind, quote: quotes[0]?.quote ?? null };
}

/** Whether a night lies beyond the day until which the tariff is known. */
function isAssumed(version: KnownVersion, nights: Line["nights"], stay: Stay): boolean {
  const { knownUntil } = version;
  return (
    knownUntil !== undefined &&
    nights.some(
      ({ night: { index } }) => anchorDate(version, stay, { index, date: stay.dates[index] ?? "" }) >= knownUntil,
    )
  );
}

function conversionOf({ currency, ...terms }: Terms, stay: Stay, unrounded: Rational): TaxComponent["conversion"] {
  if (currency === undefined || currency === stay.currency || !needsCurrency(terms)) return undefined;
  const exchange = stay.exchangeFrom(currency);
  if (!exchange) return undefined;
  const { rate, source, date } = exchange;
  return {
    currency,
    amount: unrounded.over(rate).toFixed(minorDigitsOf(currency)),
    rate: rate.toText(18),
    source,
    date,
  };
}

function rateOf({ nights }: Line, terms: Terms): TaxComponent["rate"] {
  const shown = nights.map(({ night, terms: own }) => ({ rate: night.rate, text: rateText(night.rate, own) }));
  const texts = [...new Set(shown.map(({ text }) => text))];
  const [first] = shown;
  if (!first) return { type: "flat", value: "0", display: rateText({ type: "flat", value: "0" }, terms) };
  if (texts.length === 1) return { type: first.rate.type, value: first.rate.value, display: first.text };
  return { type: "mixed", value: null, display: texts.join("; ") };
}

function slicesOf({ nights }: Line, stay: Stay, digits: number): TaxComponent["slices"] {
  const slices: { from: number; to: number; rate: string; amount: Rational }[] = [];
  for (const { night, terms } of nights) {
    const rate = night.exemption ? "0" : rateText(night.rate, terms);
    const open = slices.at(-1);
    if (open && open.to === night.index && open.rate === rate) {
      open.to++;
      open.amount = open.amount.plus(night.total);
    } else slices.push({ from: night.index, to: night.index + 1, rate, amount: night.total });
  }
  return slices.map(({ from, to, rate, amount }) => ({
    from: addDays(stay.checkin, from),
    to: addDays(stay.checkin, to),
    nights: to - from,
    rate,
    amount: amount.toFixed(digits),
  }));
}

function exemptionNotes({ nights, segments }: Line): TaxComponent["exemptions"] {
  const notes = new Map<string, TaxComponent["exemptions"][number]>();
  for (const { night } of nights) {
    if (!night.exemption) continue;
    const { code, reason } = night.exemption;
    const note = notes.get(reason) ?? { code, reason, nights: 0 };
    notes.set(reason, { ...note, nights: (note.nights ?? 0) + 1 });
  }
  const young = Math.max(0, ...segments.map((one) => one.persons?.exempt ?? 0));
  if (young > 0) notes.set("age", { code: "age", reason: "Guests of an age that does not pay", persons: young });
  return [...notes.values()];
}

function outcomesOf(tax: RuleTax): CalculationAnswer["rules_applied"] {
  const lines = linesOf(tax).map((line) => {
    const isExempt = line.total.isZero && exemptionNotes(line).length > 0;
    const [note] = exemptionNotes(line);
    return {
      rule_id: tax.rule.id,
      version: line.version.version,
      outcome: isExempt ? ("exempted" as const) : ("applied" as const),
      reason: isExempt && note ? note.reason : "in force and met",
    };
  });
  if (lines.length > 0) return lines;
  return [
    { rule_id: tax.rule.id, version: null, outcome: "skipped", reason: tax.skipped.join("; ") || "not in force" },
  ];
}

/** What the answer shows as its total, without the answer. */
export function shownTotal({ taxes }: Evaluation, stay: Stay): Rational {
  return sumOf(taxes.flatMap(linesOf).map((line) => printed(line.total, stay)));
}

/** As of the day on which the sources were read last, or that of the replay. */
function coverageOf(place: PlaceRules, stay: Stay, { slots }: Completeness): CalculationAnswer["coverage"] {
  const local = place.coverage.filter((one) => stay.dates.some((date) => isWithin(date, one)));
  const checked = versionsInForce(place, stay.dates).map(({ version }) => version.source.checked_on);
  const notes = [...local.map((one) => one.note), ...slotNotes(slots)];
  return {
    status: coverageStatus(place, slots, stay.dates),
    as_of: stay.asKnownAt ?? checked.sort().at(-1) ?? null,
    notes: [...new Set(notes)],
  };
}
