/**
 * Which VAT category each part of a stay is invoiced under. The room and the taxes in its base stand
 * at the rate of the VAT that was calculated on them. A city tax outside of VAT is exempt (E, as
 * amounts repaid on behalf of somebody else) beside parts under VAT, and not subject (O) where there
 * are none: EN 16931 allows no O beside other categories (BR-O-11). Where a country has several
 * general taxes on the same amount, each is told, though EN 16931 knows one for a line.
 */
import type { CalculationAnswer, TaxComponent } from "../calculator/calculation_answer.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";
import type { KnownRule } from "../rules/ruleset.ts";
import { isUnionCountry } from "./code_lists.ts";
import type { VatCategory } from "./invoice_document.ts";

export interface VatTerms {
  /** Null where nobody knows it: the checks ask. */
  category: VatCategory | null;
  /** Percent; null where the category has none. */
  rate: string | null;
  reasonCode: string | null;
  reason: string | null;
}

export type KnownVat = VatTerms & { category: VatCategory };

/** One line to be: an amount before VAT under one category. */
export interface Share {
  amount: Rational;
  vat: VatTerms;
  /** The tax that it charges; undefined for the room. */
  component?: TaxComponent;
  /** Nights of a part of the tax; undefined of all of it. */
  taxedNights?: number;
  /** Nights in all rooms, of a share of the room; other parts of the price have none. */
  nights?: number;
  /** Rates of further general taxes on the same amount. */
  furtherRates: string[];
}

/** A VAT of its own base, that stands on amounts which bear another one already. */
export interface FurtherVat {
  name: string;
  vat: KnownVat;
  taxable: Rational;
  tax: Rational;
}

export interface MappedVat {
  shares: Share[];
  /** VAT of one rate, and what it is called, by `vatKeyOf`. */
  taxByKey: ReadonlyMap<string, { tax: Rational; names: readonly string[] }>;
  further: FurtherVat[];
}

/** Why no VAT was calculated, when whoever issues knows. */
export type VatExemption = { category: VatCategory; reason_code?: string; reason?: string };

export const vatKeyOf = ({ category, rate }: Pick<VatTerms, "category" | "rate">) => `${category} ${rate ?? ""}`;

export interface MappingFacts {
  answer: CalculationAnswer;
  /** The rules that it was calculated by: they say which taxes are in the base of which. */
  rules: readonly KnownRule[];
  rooms: number;
  nights: number;
  /** ISO 3166-1 code that decides which law's words an exemption has. */
  country: string | null;
  sellerHasVatId: boolean;
  exemption: VatExemption | undefined;
}

/** A VAT that was calculated, and what it was calculated on. */
interface Group {
  component: TaxComponent;
  vat: KnownVat;
  taxable: Rational;
  /** Ids of rules whose tax its law takes into its base by name. */
  named: ReadonlySet<string>;
}

export function mapVat(facts: MappingFacts): MappedVat {
  const { answer, rules } = facts;
  const { components } = answer.tax_breakdown;
  const vats = components.filter(isCalculatedVat).map((component) => groupOf(component, rules));
  // A VAT on which another one is due is a charge under that one.
  const groups = vats.filter(({ component }) => !vats.some((other) => isNamedBy(component, other)));
  const taxes = components.filter(
    (one) => !Rational.parse(one.tax_amount).isZero && !groups.some(({ component }) => component === one),
  );
  const stated = statedTerms(facts, components);
  const untaxed = stated ?? unstatedTerms(facts);

  const own = ownRateGroups(taxes, groups);
  const onRoom = groups.filter((group) => ![...own.values()].includes(group));
  const { carrying, further } = layersOf(facts, onRoom, taxes);
  const taxShares: Share[] = [];
  const outside: (TaxPart & { component: TaxComponent })[] = [];
  for (const component of taxes) {
    const amount = Rational.parse(component.tax_amount);
    const ownGroup = own.get(component);
    if (ownGroup) {
      taxShares.push({ amount, vat: ownGroup.vat, component, furtherRates: [] });
      continue;
    }
    for (const part of partsInBase(component, carrying)) {
      const vat = part.group?.vat ?? (isOfVat(component) ? untaxed : undefined);
      if (!vat) outside.push({ component, ...part });
      else {
        const rates = further.filter((one) => isInBaseOf(component, one)).map(({ vat: { rate } }) => rate ?? "0");
        const { amount, taxedNights } = part;
        taxShares.push({ amount, vat, component, furtherRates: rates, ...(taxedNights && { taxedNights }) });
      }
    }
  }

  const rooms = roomShares(
    facts,
    { carrying, further },
    taxShares,
    carrying.length > 0 ? (stated ?? unknownTerms) : untaxed,
  );
  const beside = [...rooms, ...taxShares].some(({ vat }) => vat?.category !== "O");
  const outsideTerms = beside ? passedOn(facts.country) : notSubject();
  for (const { component, amount, taxedNights } of outside) {
    taxShares.push({ amount, vat: outsideTerms, component, furtherRates: [], ...(taxedNights && { taxedNights }) });
  }
  const taxByKey = new Map<string, { tax: Rational; names: string[] }>();
  for (const { vat, component } of [...carrying, ...own.values()]) {
    const known = taxByKey.get(vatKeyOf(vat)) ?? { tax: Rational.zero, names: [] };
    const names = [...new Set([...known.names, component.name])];
    taxByKey.set(vatKeyOf(vat), { tax: known.tax.plus(Rational.parse(component.tax_amount)), names });
  }
  return {
    shares: [...rooms, ...inOrderOf(components, taxShares)],
    taxByKey,
    further: further.map(({ component, vat, taxable }) => ({
      name: component.name,
      vat,
      taxable,
      tax: Rational.parse(component.tax_amount),
    })),
  };
}

const isCalculatedVat = (component: TaxComponent) =>
  component.kind === "vat" && component.taxable_amount !== null && !Rational.parse(component.taxable_amount).isZero;

function groupOf(component: TaxComponent, rules: readonly KnownRule[]): Group {
  const taxable = Rational.parse(component.taxable_amount ?? "0");
  const tax = Rational.parse(component.tax_amount);
  // Rates that differ by night have no value of their own; what they come to has.
  const rate =
    component.rate.value !== null && component.rate.type === "percent"
      ? Rational.parse(component.rate.value)
      : Rational.parse(tax.over(taxable).times(Rational.of(100)).toText(2));
  const category = rate.isZero ? "Z" : "S";
  const vat: KnownVat = { category, rate: rate.toText(), reasonCode: null, reason: null };
  return { component, taxable, vat, named: namedInBaseOf(component, rules) };
}

function namedInBaseOf({ rule_id, version }: TaxComponent, rules: readonly KnownRule[]): Set<string> {
  const known = rules.find(({ id }) => id === rule_id)?.versions.find((one) => one.version === version);
  const terms = known?.cases?.map((entry) => entry.terms) ?? (known ? [known.terms] : []);
  return new Set(terms.flatMap(({ base }) => base?.includes_tax ?? []));
}

const meet = (a: Pick<TaxComponent, "slices">, b: Pick<TaxComponent, "slices">) =>
  a.slices.some((one) => b.slices.some(({ from, to }) => from < one.to && one.from < to));

const isNamedBy = (tax: TaxComponent, { component, named }: Group) => named.has(tax.rule_id) && meet(tax, component);

/** Whether a tax says of itself that it bears VAT; general taxes are in a base by name alone. */
const isOfVat = ({ kind, vat_treatment }: TaxComponent) =>
  kind !== "vat" && kind !== "sales" && (vat_treatment === "in_base_same_rate" || vat_treatment === "own_rate");

const isInBaseOf = (tax: TaxComponent, group: Group) => isOfVat(tax) || isNamedBy(tax, group);

/**
 * The VATs that the parts of the price are split by, and those that stand on parts which another has
 * already. A VAT is further when it cannot be on a part of its own: price and taxes are less than the bases.
 */
function layersOf(
  facts: MappingFacts,
  groups: readonly Group[],
  taxes: readonly TaxComponent[],
): { carrying: Group[]; further: Group[] } {
  const most = Rational.parse(facts.answer.total_without_tax).plus(roundingOf(facts));
  const onPriceOf = (group: Group) => {
    const inBase = taxes.filter((tax) => isInBaseOf(tax, group));
    return group.taxable.minus(sumOf(inBase.map((tax) => amountOn(tax, group))));
  };
  const carrying: Group[] = [];
  const further: Group[] = [];
  for (const group of groups) {
    const beside = carrying.filter(({ component }) => meet(component, group.component));
    const isFurther = beside.length > 0 && sumOf([group, ...beside].map(onPriceOf)).compare(most) > 0;
    (isFurther ? further : carrying).push(group);
  }
  return { carrying, further };
}

/** What of a tax is due on the nights of a VAT. */
const amountOn = (tax: TaxComponent, { component }: Group) =>
  sumOf(tax.slices.filter((slice) => meet({ slices: [slice] }, component)).map(({ amount }) => Rational.parse(amount)));

/** A tax with a VAT of its own is what that VAT was calculated on, to the cent. */
function ownRateGroups(taxes: readonly TaxComponent[], groups: readonly Group[]): Map<TaxComponent, Group> {
  const found = new Map<TaxComponent, Group>();
  for (const tax of taxes.filter((one) => one.vat_treatment === "own_rate")) {
    const amount = Rational.parse(tax.tax_amount);
    const group = groups.find((one) => one.taxable.compare(amount) === 0 && ![...found.values()].includes(one));
    if (group) found.set(tax, group);
  }
  return found;
}

interface TaxPart {
  /** The VAT whose base it is in; undefined in none. */
  group?: Group;
  amount: Rational;
  /** Undefined where it is all of the tax. */
  taxedNights?: number;
}

/** A tax in the base of VAT stands under the VAT of the same nights. */
function partsInBase(component: TaxComponent, groups: readonly Group[]): TaxPart[] {
  const whole = Rational.parse(component.tax_amount);
  const joined = groups.filter((group) => isInBaseOf(component, group));
  const [only] = joined;
  if (only === undefined) return [{ amount: whole }];
  if (groups.length === 1) return [{ group: only, amount: whole }];
  const parts = new Map<Group | undefined, { amount: Rational; taxedNights: number }>();
  for (const slice of component.slices) {
    const group = joined
      .filter((one) => meet({ slices: [slice] }, one.component))
      .reduce<Group | undefined>(
        (best, one) => (best && best.taxable.compare(one.taxable) >= 0 ? best : one),
        undefined,
      );
    const { amount, taxedNights } = parts.get(group) ?? { amount: Rational.zero, taxedNights: 0 };
    parts.set(group, {
      amount: amount.plus(Rational.parse(slice.amount)),
      taxedNights: taxedNights + (Rational.parse(slice.amount).isZero ? 0 : slice.nights),
    });
  }
  const entries = [...parts].filter(([, { amount }]) => !amount.isZero);
  const rest = whole.minus(sumOf(entries.map(([, { amount }]) => amount)));
  return entries.map(([group, { amount, taxedNights }], index) => ({
    // Slices are rounded one by one; the last bears what that changes.
    amount: index === entries.length - 1 ? amount.plus(rest) : amount,
    ...(entries.length > 1 && { taxedNights }),
    ...(group && { group }),
  }));
}

/** What rounding may leave: taxes and bases are rounded, night by night where the law says so. */
function roundingOf({ answer, nights }: MappingFacts): Rational {
  const cent = Rational.of(1n, 10n ** BigInt(minorDigitsOf(answer.currency)));
  return cent.times(Rational.of(nights + answer.tax_breakdown.components.length));
}

/** The price of the room, split by the VAT that was calculated on it; what has none is a part of its own. */
function roomShares(
  facts: MappingFacts,
  { carrying, further }: { carrying: readonly Group[]; further: readonly Group[] },
  taxShares: readonly Share[],
  untaxed: VatTerms,
): Share[] {
  const { answer, rooms } = facts;
  const price = Rational.parse(answer.total_without_tax);
  const shares = carrying.map((group): Share => {
    const inBase = taxShares.filter(({ vat }) => vat === group.vat).map(({ amount }) => amount);
    const beside = further.filter(({ component }) => meet(component, group.component));
    return {
      amount: group.taxable.minus(sumOf(inBase)),
      vat: group.vat,
      nights: group.component.quantity.nights * rooms,
      furtherRates: beside.map(({ vat }) => vat.rate ?? "0"),
    };
  });
  const rest = price.minus(sumOf(shares.map(({ amount }) => amount)));
  const largest = shares.reduce<Share | undefined>(
    (best, one) => (best && best.amount.compare(one.amount) >= 0 ? best : one),
    undefined,
  );
  // What rounding loses belongs to the room.
  if (largest && rest.compare(roundingOf(facts)) <= 0) largest.amount = largest.amount.plus(rest);
  else if (!rest.isZero) {
    // The room itself, or beside it what is in the price and not in the base of its VAT.
    shares.push({
      amount: rest,
      vat: untaxed,
      furtherRates: [],
      ...nightsWithoutVat(facts, carrying),
    });
  }
  return shares.filter(({ amount }) => !amount.isZero);
}

/** All nights where none bears VAT, those that are let off where some are; other parts of the price have none. */
function nightsWithoutVat({ rooms, nights }: MappingFacts, carrying: readonly Group[]): { nights?: number } {
  const taxed = carrying.map(({ component }) => component.quantity.nights);
  const free = nights - taxed.reduce((sum, one) => sum + one, 0);
  return free > 0 ? { nights: free * rooms } : {};
}

/** Why a part of the price bears no VAT, as far as the invoice details or the law say. */
function statedTerms({ exemption, country }: MappingFacts, components: readonly TaxComponent[]): VatTerms | undefined {
  if (exemption) {
    const { category, reason_code = null, reason = null } = exemption;
    return { category, rate: category === "O" ? null : "0", reasonCode: reason_code, reason };
  }
  const exempted = components.find(({ kind, exemptions }) => kind === "vat" && exemptions.length > 0);
  if (exempted) {
    const [{ code, reason } = { code: "", reason: null }] = exempted.exemptions;
    const reasonCode = code === "small_business" && country === "FR" ? "VATEX-FR-FRANCHISE" : null;
    return { category: "E", rate: "0", reasonCode, reason };
  }
  return undefined;
}

/** A part of the price beside others that bear VAT: no law of ours says what its own is. */
const unknownTerms: VatTerms = { category: null, rate: null, reasonCode: null, reason: null };

/** The room without VAT. Without a reason: the checks ask for it, since nobody but the seller knows. */
function unstatedTerms({ sellerHasVatId }: MappingFacts): VatTerms {
  return sellerHasVatId ? { category: "E", rate: "0", reasonCode: null, reason: null } : notSubject();
}

function notSubject(): VatTerms {
  return { category: "O", rate: null, reasonCode: "VATEX-EU-O", reason: "Not subject to VAT" };
}

/** Council Directive 2006/112/EC, article 79 (c): amounts paid in the name and on behalf of another. */
function passedOn(country: string | null): VatTerms {
  const reason = "Tax collected on behalf of a public authority, outside the taxable amount for VAT";
  return { category: "E", rate: "0", reasonCode: country && isUnionCountry(country) ? "VATEX-EU-79-C" : null, reason };
}

function inOrderOf(components: readonly TaxComponent[], shares: readonly Share[]): Share[] {
  return components.flatMap((component) => shares.filter((share) => share.component === component));
}
