/**
 * Which VAT category each part of a stay is invoiced under. The room and the taxes in its base stand
 * at the rate of the VAT that was calculated on them. A city tax outside of VAT is exempt (E, as
 * amounts repaid on behalf of somebody else) beside parts under VAT, and not subject (O) where there
 * are none: EN 16931 allows no O beside other categories (BR-O-11).
 */
import type { CalculationAnswer, TaxComponent } from "../calculator/calculation_answer.ts";
import { minorDigitsOf } from "../calculator/currency.ts";
import { Rational, sumOf } from "../calculator/rational.ts";
import { isUnionCountry } from "./code_lists.ts";
import type { VatCategory } from "./invoice_document.ts";

export interface VatTerms {
  category: VatCategory;
  /** Percent; null where the category has none. */
  rate: string | null;
  reasonCode: string | null;
  reason: string | null;
}

/** One line to be: an amount before VAT under one category. */
export interface Share {
  amount: Rational;
  vat: VatTerms;
  /** The tax that it charges; undefined for the room. */
  component?: TaxComponent;
  /** Nights in all rooms, of a share of the room; other parts of the price have none. */
  nights?: number;
}

/** VAT of one rate on the invoice. */
export interface MappedVat {
  shares: Share[];
  /** VAT by `vatKeyOf`. */
  taxByKey: ReadonlyMap<string, Rational>;
}

/** Why no VAT was calculated, when whoever issues knows. */
export type VatExemption = { category: VatCategory; reason_code?: string; reason?: string };

export const vatKeyOf = ({ category, rate }: Pick<VatTerms, "category" | "rate">) => `${category} ${rate ?? ""}`;

export interface MappingFacts {
  answer: CalculationAnswer;
  rooms: number;
  nights: number;
  /** ISO 3166-1 code that decides which law's words an exemption has. */
  country: string | null;
  sellerHasVatId: boolean;
  exemption: VatExemption | undefined;
}

/** A VAT that was calculated, and the parts of the stay that stand under it. */
interface Group {
  component: TaxComponent;
  vat: VatTerms;
  taxable: Rational;
}

export function mapVat(facts: MappingFacts): MappedVat {
  const { answer } = facts;
  const { components } = answer.tax_breakdown;
  const groups = components.filter(isCalculatedVat).map(groupOf);
  const taxes = components.filter((one) => one.kind !== "vat" && !Rational.parse(one.tax_amount).isZero);
  const untaxed = untaxedTerms(facts, components);

  const own = ownRateGroups(taxes, groups);
  const roomGroups = groups.filter((group) => ![...own.values()].includes(group));
  const taxShares: Share[] = [];
  const outside: TaxComponent[] = [];
  for (const component of taxes) {
    const ownGroup = own.get(component);
    if (ownGroup) taxShares.push({ amount: Rational.parse(component.tax_amount), vat: ownGroup.vat, component });
    else if (component.vat_treatment === "in_base_same_rate" || component.vat_treatment === "own_rate") {
      taxShares.push(...sharesInBase(component, roomGroups, untaxed));
    } else outside.push(component);
  }

  const rooms = roomShares(facts, roomGroups, taxShares, untaxed);
  const beside = [...rooms, ...taxShares].some(({ vat }) => vat.category !== "O");
  const outsideTerms = beside ? passedOn(facts.country) : notSubject();
  for (const component of outside) {
    taxShares.push({ amount: Rational.parse(component.tax_amount), vat: outsideTerms, component });
  }
  const taxByKey = new Map<string, Rational>();
  for (const { vat, component } of groups) {
    const key = vatKeyOf(vat);
    taxByKey.set(key, (taxByKey.get(key) ?? Rational.zero).plus(Rational.parse(component.tax_amount)));
  }
  return { shares: [...rooms, ...inOrderOf(components, taxShares)], taxByKey };
}

const isCalculatedVat = (component: TaxComponent) =>
  component.kind === "vat" && component.taxable_amount !== null && !Rational.parse(component.taxable_amount).isZero;

function groupOf(component: TaxComponent): Group {
  const taxable = Rational.parse(component.taxable_amount ?? "0");
  const tax = Rational.parse(component.tax_amount);
  // Rates that differ by night have no value of their own; what they come to has.
  const rate =
    component.rate.value !== null && component.rate.type === "percent"
      ? Rational.parse(component.rate.value)
      : Rational.parse(tax.over(taxable).times(Rational.of(100)).toText(2));
  const category = rate.isZero ? "Z" : "S";
  return { component, taxable, vat: { category, rate: rate.toText(), reasonCode: null, reason: null } };
}

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

/** A tax in the base of VAT stands under the VAT of the same nights. */
function sharesInBase(component: TaxComponent, groups: readonly Group[], untaxed: VatTerms): Share[] {
  const whole = Rational.parse(component.tax_amount);
  const [only] = groups;
  if (groups.length < 2) return [{ amount: whole, vat: only?.vat ?? untaxed, component }];
  const amounts = new Map<Group | undefined, Rational>();
  for (const slice of component.slices) {
    const group = groups
      .filter((one) => one.component.slices.some(({ from, to }) => from < slice.to && slice.from < to))
      .reduce<Group | undefined>(
        (best, one) => (best && best.taxable.compare(one.taxable) >= 0 ? best : one),
        undefined,
      );
    amounts.set(group, (amounts.get(group) ?? Rational.zero).plus(Rational.parse(slice.amount)));
  }
  const entries = [...amounts].filter(([, amount]) => !amount.isZero);
  const rest = whole.minus(sumOf(entries.map(([, amount]) => amount)));
  return entries.map(([group, amount], index) => ({
    // Slices are rounded one by one; the last bears what that changes.
    amount: index === entries.length - 1 ? amount.plus(rest) : amount,
    vat: group?.vat ?? untaxed,
    component,
  }));
}

/** The price of the room, split by the VAT that was calculated on it; what has none is a part of its own. */
function roomShares(
  { answer, rooms, nights }: MappingFacts,
  groups: readonly Group[],
  taxShares: readonly Share[],
  untaxed: VatTerms,
): Share[] {
  const price = Rational.parse(answer.total_without_tax);
  const shares = groups.map((group): Share => {
    const inBase = taxShares.filter(({ vat }) => vat === group.vat).map(({ amount }) => amount);
    return {
      amount: group.taxable.minus(sumOf(inBase)),
      vat: group.vat,
      nights: group.component.quantity.nights * rooms,
    };
  });
  const rest = price.minus(sumOf(shares.map(({ amount }) => amount)));
  const largest = shares.reduce<Share | undefined>(
    (best, one) => (best && best.amount.compare(one.amount) >= 0 ? best : one),
    undefined,
  );
  // Taxes and bases are rounded, night by night where the law says so: what that loses belongs to the room.
  const cent = Rational.of(1n, 10n ** BigInt(minorDigitsOf(answer.currency)));
  const roundings = Rational.of(nights + answer.tax_breakdown.components.length);
  const isRounding = rest.compare(cent.times(roundings)) <= 0;
  if (largest && isRounding) largest.amount = largest.amount.plus(rest);
  else if (!rest.isZero) {
    // The room itself, or beside it what is in the price and not in the base of its VAT.
    shares.push({ amount: rest, vat: untaxed, ...(groups.length === 0 && { nights: nights * rooms }) });
  }
  return shares.filter(({ amount }) => !amount.isZero);
}

/** What the room stands under where no VAT was calculated on it. */
function untaxedTerms({ exemption, sellerHasVatId }: MappingFacts, components: readonly TaxComponent[]): VatTerms {
  if (exemption) {
    const { category, reason_code = null, reason = null } = exemption;
    return { category, rate: category === "O" ? null : "0", reasonCode: reason_code, reason };
  }
  const exempted = components.find(({ kind, exemptions }) => kind === "vat" && exemptions.length > 0);
  if (exempted) {
    return { category: "E", rate: "0", reasonCode: null, reason: exempted.exemptions[0]?.reason ?? null };
  }
  // Without a reason: the checks ask for it, since nobody but the seller knows.
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
