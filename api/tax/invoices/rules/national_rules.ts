/** Peppol BIS Billing 3.0: rules of the seller's country, as far as they touch what our invoices say. */
import { Rational } from "../../calculator/numbers/rational.ts";
import type { InvoiceDocument, Party } from "../invoice_document.ts";
import { amountOf, type BusinessRule, isFilled, mustHold } from "./business_rule.ts";
import { isNorwegianNumber, isSwedishNumber } from "./identifier_checks.ts";

type Sides = "seller" | "both";

/** A rule for sellers of one country; with `both`, where the buyer is of the same. */
function national(
  [id, term, path, message]: readonly [id: string, term: string, path: string, message: string],
  country: string,
  sides: Sides,
  holds: (document: InvoiceDocument) => boolean,
): BusinessRule {
  const applies = ({ seller, buyer }: InvoiceDocument) =>
    countryOf(seller) === country && (sides === "seller" || countryOf(buyer) === country);
  return mustHold(id, term, path, message, (document) => !applies(document) || holds(document));
}

const countryOf = ({ country }: Party) => country?.toUpperCase();
const hasStreetAndCode = ({ address_line1, postal_code }: Party) => isFilled(address_line1) && isFilled(postal_code);
const hasWholeAddress = (party: Party) => hasStreetAndCode(party) && isFilled(party.city);
const isTaxed = ({ vat_breakdown }: InvoiceDocument) => vat_breakdown.some((vat) => vat.vat_category !== "O");
const discount = /^#SKONTO#TAGE=\d+#PROZENT=\d+\.\d{2}(#BASISBETRAG=-?\d+\.\d{2})?#$/;
/** Lines that begin with # are discounts for programs to read, each with a line's end after it. */
function hasReadableDiscounts(terms: string): boolean {
  const lines = terms.split(/\r?\n/);
  const marked = lines.filter((line) => line.trim().startsWith("#"));
  return marked.every((line) => discount.test(line.trim())) && !(lines.at(-1) ?? "").includes("#");
}
const danishMeans = ["1", "10", "31", "42", "48", "49", "50", "58", "59", "93", "97"];
const dutchMeans = ["30", "48", "49", "57", "58", "59"];
const dutchSchemes = ["0106", "0190"];

export const nationalRules: readonly BusinessRule[] = [
  national(["DE-R-001", "BG-16", "payment.means_code", "Expected payment instructions"], "DE", "both", ({ payment }) =>
    isFilled(payment.means_code),
  ),
  national(
    ["DE-R-002", "BG-6", "seller.contact_name", "Expected a contact of the seller"],
    "DE",
    "both",
    ({ seller }) => [seller.contact_name, seller.contact_phone, seller.contact_email].some(isFilled),
  ),
  national(["DE-R-003", "BT-37", "seller.city", "Expected the seller's city"], "DE", "both", ({ seller }) =>
    isFilled(seller.city),
  ),
  national(["DE-R-004", "BT-38", "seller.postal_code", "Expected the seller's post code"], "DE", "both", ({ seller }) =>
    isFilled(seller.postal_code),
  ),
  national(["DE-R-005", "BT-41", "seller.contact_name", "Expected whom to ask"], "DE", "both", ({ seller }) =>
    isFilled(seller.contact_name),
  ),
  national(
    ["DE-R-006", "BT-42", "seller.contact_phone", "Expected the contact's telephone"],
    "DE",
    "both",
    ({ seller }) => isFilled(seller.contact_phone),
  ),
  national(["DE-R-007", "BT-43", "seller.contact_email", "Expected the contact's e-mail"], "DE", "both", ({ seller }) =>
    isFilled(seller.contact_email),
  ),
  national(["DE-R-008", "BT-52", "buyer.city", "Expected the buyer's city"], "DE", "both", ({ buyer }) =>
    isFilled(buyer.city),
  ),
  national(["DE-R-009", "BT-53", "buyer.postal_code", "Expected the buyer's post code"], "DE", "both", ({ buyer }) =>
    isFilled(buyer.postal_code),
  ),
  national(
    ["DE-R-010", "BT-77", "deliver_to_country", "Expected no place delivered to, as its city is not told here"],
    "DE",
    "both",
    ({ deliver_to_country }) => deliver_to_country === null,
  ),
  national(
    ["DE-R-011", "BT-78", "deliver_to_country", "Expected no place delivered to, as its post code is not told here"],
    "DE",
    "both",
    ({ deliver_to_country }) => deliver_to_country === null,
  ),
  national(
    ["DE-R-014", "BT-119", "vat_breakdown", "Expected a rate, even where there is no VAT"],
    "DE",
    "both",
    (one) => one.vat_breakdown.every(({ vat_rate }) => isFilled(vat_rate)),
  ),
  national(["DE-R-015", "BT-10", "buyer_reference", "Expected a buyer reference"], "DE", "both", (document) =>
    isFilled(document.buyer_reference),
  ),
  national(
    ["DE-R-016", "BT-31", "seller.vat_id", "Expected a VAT id or tax number of the seller"],
    "DE",
    "both",
    (one) => !isTaxed(one) || isFilled(one.seller.vat_id) || isFilled(one.seller.tax_number),
  ),
  national(
    [
      "DE-R-018",
      "BT-20",
      "payment.terms",
      "Expected #SKONTO#TAGE=n#PROZENT=n.nn#, a line of its own, or no line with #",
    ],
    "DE",
    "both",
    ({ payment }) => hasReadableDiscounts(payment.terms ?? ""),
  ),
  national(
    ["DE-R-023-1", "BG-17", "payment.account", "Expected the account to transfer to"],
    "DE",
    "both",
    ({ payment }) => !["30", "58"].includes(payment.means_code ?? "") || isFilled(payment.account),
  ),
  national(
    ["DE-R-024-1", "BG-18", "payment.means_code", "Cards are not told of here: expected other means"],
    "DE",
    "both",
    (one) => !["48", "54", "55"].includes(one.payment.means_code ?? ""),
  ),
  national(
    ["DE-R-025-1", "BG-19", "payment.means_code", "Direct debit is not told of here: expected other means"],
    "DE",
    "both",
    (one) => one.payment.means_code !== "59",
  ),

  national(
    ["DK-R-002", "BT-30", "seller.registration_number", "Expected the seller's CVR number"],
    "DK",
    "seller",
    ({ seller }) => isFilled(seller.registration_number),
  ),
  national(
    ["DK-R-014", "BT-30-1", "seller.registration_scheme", "Expected 0184, for the CVR number"],
    "DK",
    "seller",
    ({ seller }) => !isFilled(seller.registration_number) || seller.registration_scheme === "0184",
  ),
  national(
    ["DK-R-005", "BT-81", "payment.means_code", `Expected one of ${danishMeans.join(", ")}`],
    "DK",
    "both",
    (one) =>
      one.type !== "invoice" || !isFilled(one.payment.means_code) || danishMeans.includes(one.payment.means_code),
  ),
  national(
    [
      "DK-R-006",
      "BT-81",
      "payment.means_code",
      "The registration number of a bank is not told of here: expected other means",
    ],
    "DK",
    "both",
    ({ payment }) => !["31", "42"].includes(payment.means_code ?? ""),
  ),
  national(
    ["DK-R-007", "BT-81", "payment.means_code", "Direct debit is not told of here: expected other means"],
    "DK",
    "both",
    ({ payment }) => !["49"].includes(payment.means_code ?? ""),
  ),
  national(
    ["DK-R-008", "BT-81", "payment.means_code", "A giro form is not told of here: expected other means"],
    "DK",
    "both",
    ({ payment }) => !["50"].includes(payment.means_code ?? ""),
  ),
  national(
    ["DK-R-010", "BT-81", "payment.means_code", "A giro form is not told of here: expected other means"],
    "DK",
    "both",
    ({ payment }) => !["93"].includes(payment.means_code ?? ""),
  ),
  national(
    ["DK-R-016", "BT-115", "totals.payable", "Expected a credit note of no negative total"],
    "DK",
    "both",
    (one) => one.type !== "credit_note" || !amountOf(one.totals.payable).isNegative,
  ),

  national(
    ["GR-R-001-1", "BT-1", "number", "Expected a number of myDATA, of six parts, which is not given here"],
    "GR",
    "seller",
    ({ number }) => number?.split("|").length === 6,
  ),

  national(
    ["IS-R-002", "BT-30", "seller.registration_number", "Expected the seller's kennitala, scheme 0196"],
    "IS",
    "seller",
    (one) => isFilled(one.seller.registration_number) && one.seller.registration_scheme === "0196",
  ),
  national(
    ["IS-R-003", "BT-35", "seller.address_line1", "Expected the seller's street and post code"],
    "IS",
    "seller",
    (one) => hasStreetAndCode(one.seller),
  ),
  national(
    ["IS-R-004", "BT-47", "buyer.registration_number", "Expected the buyer's kennitala, scheme 0196"],
    "IS",
    "both",
    (one) => isFilled(one.buyer.registration_number) && one.buyer.registration_scheme === "0196",
  ),
  national(
    ["IS-R-005", "BT-50", "buyer.address_line1", "Expected the buyer's street and post code"],
    "IS",
    "both",
    (one) => hasStreetAndCode(one.buyer),
  ),

  national(
    ["IS-R-006", "BT-81", "payment.means_code", "An account of 12 digits is not told of here: expected other means"],
    "IS",
    "seller",
    ({ payment }) => !["9"].includes(payment.means_code ?? ""),
  ),
  national(
    ["IS-R-007", "BT-81", "payment.means_code", "An account of 12 digits is not told of here: expected other means"],
    "IS",
    "seller",
    ({ payment }) => !["42"].includes(payment.means_code ?? ""),
  ),
  national(
    ["IT-R-001", "BT-32", "seller.tax_number", "Expected 11 to 16 of A-Z and 0-9"],
    "IT",
    "seller",
    ({ seller }) => seller.tax_number === null || /^[A-Z0-9]{11,16}$/.test(seller.tax_number),
  ),
  national(
    ["IT-R-002", "BT-35", "seller.address_line1", "Expected the seller's street"],
    "IT",
    "seller",
    ({ seller }) => isFilled(seller.address_line1),
  ),
  national(["IT-R-003", "BT-37", "seller.city", "Expected the seller's city"], "IT", "seller", ({ seller }) =>
    isFilled(seller.city),
  ),
  national(
    ["IT-R-004", "BT-38", "seller.postal_code", "Expected the seller's post code"],
    "IT",
    "seller",
    ({ seller }) => isFilled(seller.postal_code),
  ),

  national(
    ["NL-R-001", "BT-25", "preceding_invoice.number", "Expected the invoice that is credited"],
    "NL",
    "seller",
    (one) => one.type !== "credit_note" || isFilled(one.preceding_invoice?.number ?? null),
  ),
  national(
    ["NL-R-002", "BG-5", "seller.address_line1", "Expected the seller's street, city and post code"],
    "NL",
    "seller",
    (one) => hasWholeAddress(one.seller),
  ),
  national(
    ["NL-R-003", "BT-30-1", "seller.registration_scheme", "Expected 0106 (KVK) or 0190 (OIN)"],
    "NL",
    "seller",
    ({ seller }) => !isFilled(seller.registration_number) || dutchSchemes.includes(seller.registration_scheme ?? ""),
  ),
  national(
    ["NL-R-004", "BG-8", "buyer.address_line1", "Expected the buyer's street, city and post code"],
    "NL",
    "both",
    (one) => hasWholeAddress(one.buyer),
  ),
  national(
    ["NL-R-005", "BT-47-1", "buyer.registration_scheme", "Expected 0106 (KVK) or 0190 (OIN)"],
    "NL",
    "both",
    ({ buyer }) => !isFilled(buyer.registration_number) || dutchSchemes.includes(buyer.registration_scheme ?? ""),
  ),
  national(
    ["NL-R-007", "BT-81", "payment.means_code", "Expected means of payment, as something is due"],
    "NL",
    "seller",
    (one) =>
      one.type !== "invoice" ||
      amountOf(one.totals.payable).compare(Rational.zero) <= 0 ||
      isFilled(one.payment.means_code),
  ),
  national(
    ["NL-R-008", "BT-81", "payment.means_code", `Expected one of ${dutchMeans.join(", ")}`],
    "NL",
    "both",
    (one) => !isFilled(one.payment.means_code) || dutchMeans.includes(one.payment.means_code),
  ),

  national(
    ["NO-R-001", "BT-31", "seller.vat_id", "Expected NO, an organization number and MVA"],
    "NO",
    "seller",
    ({ seller }) => {
      if (!seller.vat_id?.startsWith("NO")) return true;
      return /^NO\d{9}MVA$/.test(seller.vat_id) && isNorwegianNumber(seller.vat_id.slice(2, 11));
    },
  ),

  national(
    ["SE-R-001", "BT-31", "seller.vat_id", "Expected SE and 12 digits"],
    "SE",
    "seller",
    ({ seller }) => !seller.vat_id?.startsWith("SE") || seller.vat_id.length === 14,
  ),
  national(
    ["SE-R-002", "BT-31", "seller.vat_id", "Expected digits after SE"],
    "SE",
    "seller",
    ({ seller }) => !seller.vat_id?.startsWith("SE") || /^\d+$/.test(seller.vat_id.slice(2)),
  ),
  national(
    ["SE-R-003", "BT-30", "seller.registration_number", "Expected digits"],
    "SE",
    "seller",
    ({ seller }) => seller.registration_number === null || /^\d+$/.test(seller.registration_number),
  ),
  national(
    ["SE-R-004", "BT-30", "seller.registration_number", "Expected ten digits"],
    "SE",
    "seller",
    ({ seller }) => seller.registration_number === null || seller.registration_number.length === 10,
  ),
  national(
    ["SE-R-013", "BT-30", "seller.registration_number", "Expected a number with its check digit"],
    "SE",
    "seller",
    (one) => one.seller.registration_number === null || isSwedishNumber(one.seller.registration_number),
  ),
  national(
    ["SE-R-005", "BT-32", "seller.tax_number", "Expected: Godkänd för F-skatt"],
    "SE",
    "seller",
    ({ seller }) =>
      seller.tax_number === null ||
      seller.registration_number === null ||
      seller.tax_number.trim().toUpperCase() === "GODKÄND FÖR F-SKATT",
  ),
  national(
    ["SE-R-006", "BT-119", "vat_breakdown", "Expected a rate of 6, 12 or 25"],
    "SE",
    "seller",
    ({ seller, vat_breakdown }) =>
      !seller.vat_id?.startsWith("SE") ||
      vat_breakdown.every(
        (vat) => vat.vat_category !== "S" || ["6", "12", "25"].includes(amountOf(vat.vat_rate).toText()),
      ),
  ),
];
