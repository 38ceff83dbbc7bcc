/** Peppol BIS Billing 3.0: what it asks for beyond EN 16931. */
import { Rational } from "../../calculator/numbers/rational.ts";
import { isInvoiceCurrency, isPeppolAddressScheme } from "../code_lists.ts";
import { type InvoiceDocument, peppolCustomizationId, type VatCategory } from "../invoice_document.ts";
import { amountOf, type BusinessRule, eachLine, eachParty, eachVat, isFilled, mustHold } from "./business_rule.ts";
import { schemeChecks } from "./identifier_checks.ts";

const processId = /^urn:fdc:peppol\.eu:2017:poacc:billing:\d{2}:1\.0$/;

/** Exemption codes that belong to one category each. */
const categoryOfCode: readonly [string, string, VatCategory][] = [
  ["PEPPOL-EN16931-P0104", "VATEX-EU-G", "G"],
  ["PEPPOL-EN16931-P0105", "VATEX-EU-O", "O"],
  ["PEPPOL-EN16931-P0106", "VATEX-EU-IC", "K"],
  ["PEPPOL-EN16931-P0107", "VATEX-EU-AE", "AE"],
  ["PEPPOL-EN16931-P0108", "VATEX-EU-D", "E"],
  ["PEPPOL-EN16931-P0109", "VATEX-EU-F", "E"],
  ["PEPPOL-EN16931-P0110", "VATEX-EU-I", "E"],
  ["PEPPOL-EN16931-P0111", "VATEX-EU-J", "E"],
];

/** Where a document has text that is blank: it would be an empty element. */
function blanksIn(value: unknown, path = ""): string[] {
  if (typeof value === "string") return value.trim() === "" ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) => blanksIn(child, path ? `${path}.${name}` : name));
}

const withinPeriod = ({ period }: InvoiceDocument, date: string) =>
  period === null || (date >= period.start && date <= period.end);

export const peppolRules: readonly BusinessRule[] = [
  mustHold("PEPPOL-EN16931-R001", "BT-23", "profile.process_id", "Expected a business process", ({ profile }) =>
    isFilled(profile.process_id),
  ),
  mustHold(
    "PEPPOL-EN16931-R003",
    "BT-10",
    "buyer_reference",
    "Expected a buyer reference or an order reference",
    (one) => isFilled(one.buyer_reference) || isFilled(one.order_reference),
  ),
  mustHold(
    "PEPPOL-EN16931-R004",
    "BT-24",
    "profile.customization_id",
    `Expected ${peppolCustomizationId}`,
    ({ profile }) => (profile.customization_id ?? "").startsWith(peppolCustomizationId),
  ),
  mustHold(
    "PEPPOL-EN16931-R007",
    "BT-23",
    "profile.process_id",
    "Expected urn:fdc:peppol.eu:2017:poacc:billing:NN:1.0",
    ({ profile }) => profile.process_id === null || processId.test(profile.process_id),
  ),
  {
    id: "PEPPOL-EN16931-R008",
    term: "BG-0",
    message: "Expected text that is not blank",
    brokenAt: (document) => blanksIn(document),
  },
  mustHold(
    "PEPPOL-EN16931-R010",
    "BT-49",
    "buyer.electronic_address",
    "Expected the buyer's electronic address",
    (one) => isFilled(one.buyer.electronic_address),
  ),
  mustHold(
    "PEPPOL-EN16931-R020",
    "BT-34",
    "seller.electronic_address",
    "Expected the seller's electronic address",
    (one) => isFilled(one.seller.electronic_address),
  ),
  mustHold(
    "PEPPOL-EN16931-R061",
    "BT-89",
    "payment.means_code",
    "Direct debit needs a mandate: expected other means",
    (one) => one.payment.means_code !== "49" && one.payment.means_code !== "59",
  ),
  eachLine(
    "PEPPOL-EN16931-R110",
    "BT-134",
    "period.start",
    "Expected a day of the invoicing period",
    (line, document) => line.period === null || withinPeriod(document, line.period.start),
  ),
  eachLine(
    "PEPPOL-EN16931-R111",
    "BT-135",
    "period.end",
    "Expected a day of the invoicing period",
    (line, document) => line.period === null || withinPeriod(document, line.period.end),
  ),
  eachLine("PEPPOL-EN16931-R120", "BT-131", "net_amount", "Expected the quantity times the price", (line) => {
    const base = amountOf(line.price_base_quantity);
    if (base.isZero) return true;
    const expected = amountOf(line.quantity).times(amountOf(line.price_amount)).over(base);
    const difference = amountOf(line.net_amount).minus(expected);
    return (difference.isNegative ? Rational.zero.minus(difference) : difference).compare(Rational.of(2, 100)) <= 0;
  }),
  eachLine(
    "PEPPOL-EN16931-R121",
    "BT-149",
    "price_base_quantity",
    "Expected a quantity above 0",
    (line) => amountOf(line.price_base_quantity).compare(Rational.zero) > 0,
  ),
  mustHold("PEPPOL-EN16931-CL007", "BT-5", "currency", "Expected an ISO 4217 code", ({ currency }) =>
    isInvoiceCurrency(currency),
  ),
  ...eachParty(
    "PEPPOL-EN16931-CL008",
    { seller: "BT-34-1", buyer: "BT-49-1" },
    "electronic_address_scheme",
    "Expected a scheme that Peppol routes, for example 0088",
    ({ electronic_address_scheme: scheme }) => scheme === null || isPeppolAddressScheme(scheme),
  ),
  mustHold(
    "PEPPOL-EN16931-P0100",
    "BT-3",
    "type_code",
    "Expected 380 for an invoice",
    ({ type, type_code }) => type !== "invoice" || type_code === "380",
  ),
  mustHold(
    "PEPPOL-EN16931-P0101",
    "BT-3",
    "type_code",
    "Expected 381 for a credit note",
    ({ type, type_code }) => type !== "credit_note" || type_code === "381",
  ),
  ...categoryOfCode.map(([id, code, category]) =>
    eachVat(
      id,
      "BT-118",
      "vat_category",
      `Expected category ${category} with ${code}`,
      (vat) => vat.exemption_reason_code?.toUpperCase() !== code || vat.vat_category === category,
    ),
  ),
  ...schemeChecks.flatMap(({ rule, scheme, what, isValid }) => [
    ...eachParty(
      rule,
      { seller: "BT-34", buyer: "BT-49" },
      "electronic_address",
      `Expected ${what}`,
      (party) => party.electronic_address_scheme !== scheme || isValid(party.electronic_address ?? ""),
    ),
    ...eachParty(
      rule,
      { seller: "BT-30", buyer: "BT-47" },
      "registration_number",
      `Expected ${what}`,
      (party) =>
        party.registration_scheme !== scheme ||
        party.registration_number === null ||
        isValid(party.registration_number),
    ),
  ]),
];
