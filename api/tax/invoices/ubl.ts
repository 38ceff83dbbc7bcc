/**
 * A document in UBL 2.1, as Peppol BIS Billing 3.0 binds its terms: `Invoice`, or `CreditNote` whose
 * elements have names and an order of their own in places. Elements come in the order of the schema.
 */
import type { DocumentLine, InvoiceDocument, Party, VatBreakdown, VatCategory } from "./invoice_document.ts";
import { type Element, element, xmlText } from "./xml.ts";

const namespaces = {
  cac: "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
  cbc: "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
};

/** The document as UBL. Check it first: what is missing is left out. */
export function ublFor(document: InvoiceDocument): string {
  const isCredit = document.type === "credit_note";
  const root = isCredit ? "CreditNote" : "Invoice";
  const content = [
    cbc("CustomizationID", document.profile.customization_id),
    cbc("ProfileID", document.profile.process_id),
    cbc("ID", document.number),
    cbc("IssueDate", document.issue_date),
    isCredit ? undefined : cbc("DueDate", document.due_date),
    cbc(isCredit ? "CreditNoteTypeCode" : "InvoiceTypeCode", document.type_code),
    cbc("Note", document.note),
    cbc("DocumentCurrencyCode", document.currency),
    cbc("BuyerReference", document.buyer_reference),
    periodOf(document.period),
    cac("OrderReference", [cbc("ID", document.order_reference)]),
    cac("BillingReference", [
      cac("InvoiceDocumentReference", [
        cbc("ID", document.preceding_invoice?.number),
        cbc("IssueDate", document.preceding_invoice?.issue_date),
      ]),
    ]),
    cac("ContractDocumentReference", [cbc("ID", document.contract_reference)]),
    cac("AccountingSupplierParty", [partyOf(document.seller)]),
    cac("AccountingCustomerParty", [partyOf(document.buyer)]),
    cac("Delivery", [
      cac("DeliveryLocation", [
        cac("Address", [cac("Country", [cbc("IdentificationCode", document.deliver_to_country)])]),
      ]),
    ]),
    paymentMeansOf(document),
    cac("PaymentTerms", [cbc("Note", document.payment.terms)]),
    cac("TaxTotal", [
      money("TaxAmount", document.totals.vat, document),
      ...document.vat_breakdown.map((vat) => taxSubtotalOf(vat, document)),
    ]),
    cac("LegalMonetaryTotal", [
      money("LineExtensionAmount", document.totals.line_net, document),
      money("TaxExclusiveAmount", document.totals.without_vat, document),
      money("TaxInclusiveAmount", document.totals.with_vat, document),
      money("PrepaidAmount", document.totals.paid, document),
      money("PayableAmount", document.totals.payable, document),
    ]),
    ...document.lines.map((line) => lineOf(line, document)),
  ];
  const whole = element(root, content, {
    xmlns: `urn:oasis:names:specification:ubl:schema:xsd:${root}-2`,
    "xmlns:cac": namespaces.cac,
    "xmlns:cbc": namespaces.cbc,
  });
  if (!whole) throw new Error("Cannot write an empty document");
  return xmlText(whole);
}

/** Basic components hold text, aggregate components hold elements. */
const cbc = (name: string, text: string | null | undefined, attributes: Record<string, string | null> = {}) =>
  element(`cbc:${name}`, text, attributes);
const cac = (name: string, content: readonly (Element | undefined)[]) => element(`cac:${name}`, content);
const money = (name: string, amount: string | null, { currency }: InvoiceDocument) =>
  cbc(name, amount, { currencyID: currency });
const vatScheme = () => cac("TaxScheme", [cbc("ID", "VAT")]);

const periodOf = (period: InvoiceDocument["period"]) =>
  cac("InvoicePeriod", [cbc("StartDate", period?.start), cbc("EndDate", period?.end)]);

function partyOf(party: Party) {
  return cac("Party", [
    cbc("EndpointID", party.electronic_address, { schemeID: party.electronic_address_scheme }),
    cac("PartyName", [cbc("Name", party.trading_name)]),
    cac("PostalAddress", [
      cbc("StreetName", party.address_line1),
      cbc("AdditionalStreetName", party.address_line2),
      cbc("CityName", party.city),
      cbc("PostalZone", party.postal_code),
      cbc("CountrySubentity", party.region),
      cac("Country", [cbc("IdentificationCode", party.country)]),
    ]),
    party.vat_id === null ? undefined : cac("PartyTaxScheme", [cbc("CompanyID", party.vat_id), vatScheme()]),
    party.tax_number === null
      ? undefined
      : cac("PartyTaxScheme", [cbc("CompanyID", party.tax_number), cac("TaxScheme", [cbc("ID", "TAX")])]),
    cac("PartyLegalEntity", [
      cbc("RegistrationName", party.name),
      cbc("CompanyID", party.registration_number, { schemeID: party.registration_scheme }),
      cbc("CompanyLegalForm", party.legal_form),
    ]),
    cac("Contact", [
      cbc("Name", party.contact_name),
      cbc("Telephone", party.contact_phone),
      cbc("ElectronicMail", party.contact_email),
    ]),
  ]);
}

function paymentMeansOf({ payment }: InvoiceDocument) {
  if (payment.means_code === null) return undefined;
  return cac("PaymentMeans", [
    cbc("PaymentMeansCode", payment.means_code),
    cbc("PaymentID", payment.reference),
    cac("PayeeFinancialAccount", [cbc("ID", payment.account)]),
  ]);
}

const categoryOf = (
  name: string,
  category: VatCategory | null,
  rate: string | null,
  reason?: Pick<VatBreakdown, "exemption_reason" | "exemption_reason_code">,
) =>
  cac(name, [
    cbc("ID", category),
    cbc("Percent", rate),
    cbc("TaxExemptionReasonCode", reason?.exemption_reason_code),
    cbc("TaxExemptionReason", reason?.exemption_reason),
    vatScheme(),
  ]);

const taxSubtotalOf = (vat: VatBreakdown, document: InvoiceDocument) =>
  cac("TaxSubtotal", [
    money("TaxableAmount", vat.taxable_amount, document),
    money("TaxAmount", vat.tax_amount, document),
    categoryOf("TaxCategory", vat.vat_category, vat.vat_rate, vat),
  ]);

function lineOf(line: DocumentLine, document: InvoiceDocument) {
  const isCredit = document.type === "credit_note";
  return cac(isCredit ? "CreditNoteLine" : "InvoiceLine", [
    cbc("ID", line.id),
    cbc(isCredit ? "CreditedQuantity" : "InvoicedQuantity", line.quantity, { unitCode: line.unit_code }),
    money("LineExtensionAmount", line.net_amount, document),
    periodOf(line.period),
    cac("Item", [
      cbc("Description", line.description),
      cbc("Name", line.name),
      categoryOf("ClassifiedTaxCategory", line.vat_category, line.vat_rate),
    ]),
    cac("Price", [
      money("PriceAmount", line.price_amount, document),
      cbc("BaseQuantity", line.price_base_quantity, { unitCode: line.unit_code }),
    ]),
  ]);
}
