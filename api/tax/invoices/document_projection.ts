/** A booking as the invoice that it would be, or is: pure, from what is known of the stay, seller and buyer. */

import type { LegalProfile } from "#accounts/legal_profile.ts";
import type { CalculationAnswer, TaxComponent } from "../calculator/calculation_answer.ts";
import type { CalculationRequest } from "../calculator/calculation_request.ts";
import { addDays } from "../calculator/law/calendar.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";
import type { KnownRule } from "../rules/ruleset.ts";
import { hasEn16931 } from "./code_lists.ts";
import { documentTextIn } from "./document_text.ts";
import type { InvoiceDetails } from "./invoice_details.ts";
import {
  type DocumentLine,
  type InvoiceDocument,
  type Party,
  peppolCustomizationId,
  peppolProcessId,
  type VatBreakdown,
} from "./invoice_document.ts";
import { type KnownVat, type MappedVat, mapVat, type Share, type VatTerms, vatKeyOf } from "./vat_mapping.ts";

/** What of a booking its invoice is made from. */
export interface InvoicedStay {
  answer: CalculationAnswer;
  /** The rules that the answer was calculated by. */
  rules: readonly KnownRule[];
  request: Pick<CalculationRequest, "stay_date" | "nights" | "rooms" | "included_amounts">;
}

/** The draft: an invoice without number and date. */
export function projectInvoice(stay: InvoicedStay, seller: LegalProfile, details: InvoiceDetails): InvoiceDocument {
  return documentTextIn(documentOf(stay, seller, details));
}

function documentOf(stay: InvoicedStay, seller: LegalProfile, details: InvoiceDetails): InvoiceDocument {
  const { answer, request, rules } = stay;
  const country = seller.country ?? answer.jurisdiction.code.slice(0, 2);
  const compliant = hasEn16931(country);
  const mapped = mapVat({
    answer,
    rules,
    rooms: request.rooms ?? 1,
    nights: request.nights,
    country,
    sellerHasVatId: seller.vat_id !== undefined,
    exemption: details.vat_exemption,
  });
  const digits = minorDigitsOf(answer.currency);
  const lines = mapped.shares.map((share, index) => lineFrom(share, String(index + 1), request, digits));
  const breakdown = breakdownOf(mapped, digits);
  // An invoice of nothing under VAT names no VAT ids (BR-O-02).
  const withVatIds = breakdown.some((one) => one.vat_category !== "O");
  return {
    profile: {
      compliant,
      customization_id: compliant ? peppolCustomizationId : null,
      process_id: compliant ? peppolProcessId : null,
      note: compliant ? null : `EN 16931 does not apply to sellers in ${country}: this is no e-invoice`,
    },
    type: "invoice",
    type_code: "380",
    number: null,
    issue_date: null,
    due_date: details.payment_due_date ?? null,
    currency: answer.currency,
    buyer_reference: details.buyer_reference ?? null,
    order_reference: details.order_reference ?? null,
    contract_reference: details.contract_reference ?? null,
    note: details.note ?? null,
    preceding_invoice: null,
    period: { start: request.stay_date, end: addDays(request.stay_date, request.nights) },
    seller: partyFrom(seller, withVatIds),
    buyer: partyFrom(buyerProfile(details), withVatIds),
    deliver_to_country: details.vat_exemption?.category === "K" ? answer.jurisdiction.code.slice(0, 2) : null,
    payment: paymentFrom(seller, details),
    lines,
    vat_breakdown: breakdown,
    totals: totalsOf(lines, breakdown, details.paid_amount, digits),
  };
}

/** What takes an issued invoice back, whole. */
export function creditNoteFor(invoice: InvoiceDocument): InvoiceDocument {
  if (invoice.number === null || invoice.issue_date === null)
    throw new Error("Cannot credit an invoice without a number");
  return {
    ...invoice,
    type: "credit_note",
    type_code: "381",
    number: null,
    issue_date: null,
    // Nothing falls due: it is given back.
    due_date: null,
    payment: { ...invoice.payment, terms: invoice.payment.terms ?? "Credited in full" },
    preceding_invoice: { number: invoice.number, issue_date: invoice.issue_date },
  };
}

function lineFrom(share: Share, id: string, request: InvoicedStay["request"], digits: number): DocumentLine {
  const { vat, component } = share;
  // A price is never negative (BR-27): what is taken off is a negative quantity.
  const amount = share.amount.isNegative ? Rational.zero.minus(share.amount) : share.amount;
  const sign = share.amount.isNegative ? "-" : "";
  const nights = component ? undefined : share.nights;
  const common = {
    id,
    net_amount: share.amount.toFixed(digits),
    vat_category: vat.category,
    vat_rate: vat.rate,
    further_vat_rates: share.furtherRates,
  };
  if (component || !nights) {
    return {
      ...common,
      name: component?.name ?? includedText(request),
      description: component ? descriptionOf(component, share.taxedNights) : null,
      quantity: `${sign}1`,
      unit_code: "C62",
      price_amount: amount.toFixed(digits),
      price_base_quantity: "1",
      period: null,
      rule_id: component?.rule_id ?? null,
    };
  }
  // The price of a night where it is one of whole cents, of all nights where it is not.
  const each = amount.over(Rational.of(nights));
  const isWhole = Rational.parse(each.toFixed(digits)).compare(each) === 0;
  const rooms = request.rooms ?? 1;
  const stay = counted(request.nights, "night");
  const ofStay = nights === request.nights * rooms ? stay : `${counted(nights / rooms, "night")} of the ${stay}`;
  return {
    ...common,
    name: "Accommodation",
    description: `${ofStay} from ${request.stay_date}${rooms > 1 ? `, ${rooms} rooms` : ""}`,
    quantity: `${sign}${nights}`,
    unit_code: "DAY",
    price_amount: (isWhole ? each : amount).toFixed(digits),
    price_base_quantity: isWhole ? "1" : String(nights),
    period: { start: request.stay_date, end: addDays(request.stay_date, request.nights) },
    rule_id: null,
  };
}

/** What is in the price and not the room: `Included in the price: breakfast, cleaning`. */
function includedText({ included_amounts: included = {} }: InvoicedStay["request"]): string {
  const parts = Object.entries(included).filter(([, amount]) => typeof amount !== "boolean" && amount !== undefined);
  const names = parts.map(([part]) => part.replace("_", " "));
  return names.length > 0 ? `Included in the price: ${names.join(", ")}` : "Other parts of the price";
}

/** What a guest asks of a tax: how much it is, and how often: `4.00 EUR per person and night, 3 nights, 2 persons`. */
function descriptionOf({ rate, unit, quantity }: TaxComponent, taxedNights = quantity.nights): string {
  const { persons, rooms } = quantity;
  const counts = [counted(taxedNights, "night")];
  if (unit.startsWith("person")) counts.push(counted(persons, "person"));
  else if (rooms > 1) counts.push(counted(rooms, "room"));
  return `${rate.display.slice(0, 900)}, ${counts.join(", ")}`;
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

const isKnown = (terms: VatTerms): terms is KnownVat => terms.category !== null;

function breakdownOf({ shares, taxByKey, further }: MappedVat, digits: number): VatBreakdown[] {
  const groups = new Map<string, { terms: KnownVat[]; amount: Rational }>();
  for (const { vat, amount } of shares) {
    if (!isKnown(vat)) continue;
    const key = vatKeyOf(vat);
    const group = groups.get(key) ?? { terms: [], amount: Rational.zero };
    groups.set(key, { terms: [...group.terms, vat], amount: group.amount.plus(amount) });
  }
  const ofLines = [...groups].map(([key, { terms, amount }]) => {
    const [first] = terms as [KnownVat];
    const isOneReason = terms.every((one) => one.reason === first.reason && one.reasonCode === first.reasonCode);
    const reasons = [...new Set(terms.flatMap(({ reason, reasonCode }) => reason ?? reasonCode ?? []))];
    // Part of it without a reason is all of it without: the checks ask for the one that is missing.
    const isComplete = terms.every(({ reason, reasonCode }) => reason !== null || reasonCode !== null);
    const { tax, names } = taxByKey.get(key) ?? { tax: Rational.zero, names: [] };
    return {
      tax_name: names.length > 0 ? names.join("; ") : null,
      vat_category: first.category,
      vat_rate: first.rate,
      taxable_amount: amount.toFixed(digits),
      tax_amount: tax.toFixed(digits),
      // One group may have one code (BR-E-01): several reasons are told in words.
      exemption_reason_code: isOneReason ? first.reasonCode : null,
      exemption_reason: isComplete && reasons.length > 0 ? reasons.join("; ") : null,
    };
  });
  const ofFurther = further.map(({ name, vat, taxable, tax }) => ({
    tax_name: name,
    vat_category: vat.category,
    vat_rate: vat.rate,
    taxable_amount: taxable.toFixed(digits),
    tax_amount: tax.toFixed(digits),
    exemption_reason_code: null,
    exemption_reason: null,
  }));
  return [...ofLines, ...ofFurther];
}

function totalsOf(
  lines: readonly DocumentLine[],
  breakdown: readonly VatBreakdown[],
  paidAmount: string | undefined,
  digits: number,
): InvoiceDocument["totals"] {
  const net = sumOf(lines.map(({ net_amount }) => Rational.parse(net_amount)));
  const vat = sumOf(breakdown.map(({ tax_amount }) => Rational.parse(tax_amount)));
  const withVat = net.plus(vat);
  const paid = paidAmount === undefined ? undefined : Rational.parse(paidAmount);
  return {
    line_net: net.toFixed(digits),
    without_vat: net.toFixed(digits),
    vat: vat.toFixed(digits),
    with_vat: withVat.toFixed(digits),
    paid: paid?.toFixed(digits) ?? null,
    payable: withVat.minus(paid ?? Rational.zero).toFixed(digits),
  };
}

function partyFrom(fields: LegalProfile, withVatId: boolean): Party {
  return {
    name: fields.legal_name ?? null,
    trading_name: fields.trading_name ?? null,
    vat_id: withVatId ? (fields.vat_id ?? null) : null,
    tax_number: fields.tax_number ?? null,
    registration_number: fields.registration_number ?? null,
    registration_scheme: fields.registration_scheme ?? null,
    legal_form: fields.legal_form ?? null,
    address_line1: fields.address_line1 ?? null,
    address_line2: fields.address_line2 ?? null,
    city: fields.city ?? null,
    postal_code: fields.postal_code ?? null,
    region: fields.region ?? null,
    country: fields.country ?? null,
    electronic_address: fields.electronic_address ?? null,
    electronic_address_scheme: fields.electronic_address_scheme ?? null,
    contact_name: fields.contact_name ?? null,
    contact_phone: fields.contact_phone ?? null,
    contact_email: fields.contact_email ?? null,
  };
}

/** Credit transfer to the seller's account, where it has one and nothing else is said. */
function paymentFrom(seller: LegalProfile, details: InvoiceDetails): InvoiceDocument["payment"] {
  const means = details.payment_means_code ?? (seller.iban ? "30" : null);
  const isTransfer = means === "30" || means === "58";
  return {
    means_code: means,
    account: isTransfer ? (seller.iban ?? null) : null,
    reference: details.payment_reference ?? null,
    terms: details.payment_terms ?? seller.payment_terms ?? null,
  };
}

function buyerProfile({ buyer: { name, ...fields } = {} }: InvoiceDetails): LegalProfile {
  return { ...fields, ...(name !== undefined && { legal_name: name }) };
}
