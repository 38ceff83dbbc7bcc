/** EN 16931: the document as a whole, its parties, payment and totals. */

import { sumOf } from "../../calculator/numbers/rational.ts";
import { isCalendarDate } from "../../rules/ruleset.ts";
import { isAddressScheme, isCountry, isInvoiceCurrency, isPaymentMeans, isRegistrationScheme } from "../code_lists.ts";
import type { InvoiceDocument, Party } from "../invoice_document.ts";
import {
  amountOf,
  type BusinessRule,
  decimalOf,
  eachParty,
  hasTwoDecimals,
  isFilled,
  isSame,
  mustHold,
} from "./business_rule.ts";

/** Rules that hold from the moment of issue on: number and date are given then. */
export const rulesOfIssue: ReadonlySet<string> = new Set(["BR-02", "BR-03"]);

const hasAddress = (party: Party) =>
  [party.address_line1, party.address_line2, party.city, party.postal_code, party.region, party.country].some(isFilled);
const isTransfer = ({ payment }: InvoiceDocument) => payment.means_code === "30" || payment.means_code === "58";
const isVatIdPrefix = (prefix: string) => prefix === "EL" || isCountry(prefix);

export const headerRules: readonly BusinessRule[] = [
  mustHold("BR-01", "BT-24", "profile.customization_id", "Expected a specification identifier", ({ profile }) =>
    isFilled(profile.customization_id),
  ),
  mustHold("BR-02", "BT-1", "number", "Expected an invoice number", ({ number }) => isFilled(number)),
  mustHold("BR-03", "BT-2", "issue_date", "Expected an issue date", ({ issue_date }) => isFilled(issue_date)),
  mustHold("BR-04", "BT-3", "type_code", "Expected an invoice type code", ({ type_code }) => isFilled(type_code)),
  mustHold("BR-05", "BT-5", "currency", "Expected a currency code", ({ currency }) => isFilled(currency)),
  mustHold("BR-06", "BT-27", "seller.name", "Expected the seller's name", ({ seller }) => isFilled(seller.name)),
  mustHold("BR-07", "BT-44", "buyer.name", "Expected the buyer's name", ({ buyer }) => isFilled(buyer.name)),
  mustHold("BR-08", "BG-5", "seller.address_line1", "Expected the seller's postal address", ({ seller }) =>
    hasAddress(seller),
  ),
  mustHold("BR-09", "BT-40", "seller.country", "Expected the country of the seller's address", ({ seller }) =>
    isFilled(seller.country),
  ),
  mustHold("BR-10", "BG-8", "buyer.address_line1", "Expected the buyer's postal address", ({ buyer }) =>
    hasAddress(buyer),
  ),
  mustHold("BR-11", "BT-55", "buyer.country", "Expected the country of the buyer's address", ({ buyer }) =>
    isFilled(buyer.country),
  ),
  mustHold("BR-12", "BT-106", "totals.line_net", "Expected the sum of line net amounts", ({ totals }) =>
    Boolean(decimalOf(totals.line_net)),
  ),
  mustHold("BR-13", "BT-109", "totals.without_vat", "Expected the total without VAT", ({ totals }) =>
    Boolean(decimalOf(totals.without_vat)),
  ),
  mustHold("BR-14", "BT-112", "totals.with_vat", "Expected the total with VAT", ({ totals }) =>
    Boolean(decimalOf(totals.with_vat)),
  ),
  mustHold("BR-15", "BT-115", "totals.payable", "Expected the amount due for payment", ({ totals }) =>
    Boolean(decimalOf(totals.payable)),
  ),
  mustHold("BR-16", "BG-25", "lines", "Expected at least one line", ({ lines }) => lines.length > 0),
  mustHold(
    "BR-29",
    "BT-74",
    "period.end",
    "Expected a period that ends no earlier than it starts",
    ({ period }) => period === null || period.end >= period.start,
  ),
  mustHold(
    "BR-49",
    "BT-81",
    "payment.means_code",
    "Expected a payment means code",
    ({ payment }) => isFilled(payment.means_code) || (!isFilled(payment.account) && !isFilled(payment.reference)),
  ),
  mustHold(
    "BR-50",
    "BT-84",
    "payment.account",
    "Expected an account that is not blank",
    ({ payment }) => payment.account === null || isFilled(payment.account),
  ),
  mustHold(
    "BR-55",
    "BT-25",
    "preceding_invoice.number",
    "Expected the number of the preceding invoice",
    (document) => document.preceding_invoice === null || isFilled(document.preceding_invoice.number),
  ),
  mustHold(
    "BR-57",
    "BT-80",
    "deliver_to_country",
    "Expected the country delivered to",
    ({ deliver_to_country }) => deliver_to_country === null || isFilled(deliver_to_country),
  ),
  mustHold(
    "BR-61",
    "BT-84",
    "payment.account",
    "Expected the account to transfer to",
    (document) => !isTransfer(document) || isFilled(document.payment.account),
  ),
  mustHold(
    "BR-62",
    "BT-34",
    "seller.electronic_address_scheme",
    "Expected the scheme of the address",
    ({ seller }) => seller.electronic_address === null || isFilled(seller.electronic_address_scheme),
  ),
  mustHold(
    "BR-63",
    "BT-49",
    "buyer.electronic_address_scheme",
    "Expected the scheme of the address",
    ({ buyer }) => buyer.electronic_address === null || isFilled(buyer.electronic_address_scheme),
  ),

  ...eachParty(
    "BR-CO-09",
    { seller: "BT-31", buyer: "BT-48" },
    "vat_id",
    "Expected a country's prefix",
    (party) => party.vat_id === null || isVatIdPrefix(party.vat_id.slice(0, 2)),
  ),
  mustHold("BR-CO-10", "BT-106", "totals.line_net", "Expected the sum of the lines' net amounts", ({ totals, lines }) =>
    isSame(amountOf(totals.line_net), sumOf(lines.map((line) => amountOf(line.net_amount)))),
  ),
  mustHold("BR-CO-13", "BT-109", "totals.without_vat", "Expected the sum of line net amounts", ({ totals }) =>
    isSame(amountOf(totals.without_vat), amountOf(totals.line_net)),
  ),
  mustHold("BR-CO-14", "BT-110", "totals.vat", "Expected the sum of the VAT breakdown", ({ totals, vat_breakdown }) =>
    isSame(amountOf(totals.vat), sumOf(vat_breakdown.map((vat) => amountOf(vat.tax_amount)))),
  ),
  mustHold("BR-CO-15", "BT-112", "totals.with_vat", "Expected the total without VAT plus the VAT", ({ totals }) =>
    isSame(amountOf(totals.with_vat), amountOf(totals.without_vat).plus(amountOf(totals.vat))),
  ),
  mustHold("BR-CO-16", "BT-115", "totals.payable", "Expected the total with VAT less what is paid", ({ totals }) =>
    isSame(amountOf(totals.payable), amountOf(totals.with_vat).minus(amountOf(totals.paid))),
  ),
  mustHold(
    "BR-CO-18",
    "BG-23",
    "vat_breakdown",
    "Expected at least one VAT breakdown",
    ({ vat_breakdown }) => vat_breakdown.length > 0,
  ),
  mustHold(
    "BR-CO-19",
    "BG-14",
    "period.start",
    "Expected a first or a last day of the period",
    ({ period }) => period === null || isFilled(period.start) || isFilled(period.end),
  ),
  mustHold(
    "BR-CO-25",
    "BT-9",
    "due_date",
    "Expected a due date or payment terms, as something is due",
    (document) =>
      amountOf(document.totals.payable).compare(amountOf("0")) <= 0 ||
      isFilled(document.due_date) ||
      isFilled(document.payment.terms),
  ),
  mustHold(
    "BR-CO-26",
    "BT-31",
    "seller.vat_id",
    "Expected a VAT id or registration number of the seller",
    (document) => isFilled(document.seller.vat_id) || isFilled(document.seller.registration_number),
  ),

  mustHold(
    "BR-CL-01",
    "BT-3",
    "type_code",
    "Expected 380 for an invoice, 381 for a credit note",
    (document) => document.type_code === (document.type === "credit_note" ? "381" : "380"),
  ),
  mustHold("BR-CL-04", "BT-5", "currency", "Expected an ISO 4217 code", ({ currency }) => isInvoiceCurrency(currency)),
  ...eachParty(
    "BR-CL-11",
    { seller: "BT-30-1", buyer: "BT-47-1" },
    "registration_scheme",
    "Expected an ISO 6523 code",
    ({ registration_scheme: scheme }) => scheme === null || isRegistrationScheme(scheme),
  ),
  ...eachParty(
    "BR-CL-14",
    { seller: "BT-40", buyer: "BT-55" },
    "country",
    "Expected an ISO 3166-1 code",
    ({ country }) => country === null || isCountry(country),
  ),
  mustHold(
    "BR-CL-14",
    "BT-80",
    "deliver_to_country",
    "Expected an ISO 3166-1 code",
    ({ deliver_to_country: country }) => country === null || isCountry(country),
  ),
  mustHold(
    "BR-CL-16",
    "BT-81",
    "payment.means_code",
    "Expected a code of UNTDID 4461",
    ({ payment: { means_code } }) => means_code === null || isPaymentMeans(means_code),
  ),
  ...eachParty(
    "BR-CL-25",
    { seller: "BT-34-1", buyer: "BT-49-1" },
    "electronic_address_scheme",
    "Expected an EAS code",
    ({ electronic_address_scheme: scheme }) => scheme === null || isAddressScheme(scheme),
  ),

  ...(
    [
      ["BR-DEC-09", "BT-106", "line_net"],
      ["BR-DEC-12", "BT-109", "without_vat"],
      ["BR-DEC-13", "BT-110", "vat"],
      ["BR-DEC-14", "BT-112", "with_vat"],
      ["BR-DEC-16", "BT-113", "paid"],
      ["BR-DEC-18", "BT-115", "payable"],
    ] as const
  ).map(([id, term, field]) =>
    mustHold(id, term, `totals.${field}`, "Expected at most two decimals", ({ totals }) =>
      hasTwoDecimals(totals[field]),
    ),
  ),
];

/** Dates as the standard writes them: PEPPOL-EN16931-F001. */
export const dateRules: readonly BusinessRule[] = (
  [
    ["BT-2", "issue_date", (document) => document.issue_date],
    ["BT-9", "due_date", (document) => document.due_date],
    ["BT-26", "preceding_invoice.issue_date", (document) => document.preceding_invoice?.issue_date ?? null],
    ["BT-73", "period.start", (document) => document.period?.start ?? null],
    ["BT-74", "period.end", (document) => document.period?.end ?? null],
  ] as [string, string, (document: InvoiceDocument) => string | null][]
).map(([term, path, read]) =>
  mustHold("PEPPOL-EN16931-F001", term, path, "Expected a date as YYYY-MM-DD", (document) => {
    const date = read(document);
    return date === null || (/^\d{4}-\d{2}-\d{2}$/.test(date) && isCalendarDate(date));
  }),
);
