/**
 * An invoice or credit note as EN 16931 sees one: its business terms under names of ours, each with
 * its number (BT-…) beside it. The checks read it, UBL is written from it, and it is kept as issued.
 * Amounts are decimal strings, dates YYYY-MM-DD; what is not known is null.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText } from "#http/timestamp.ts";

/** UNTDID 5305, as far as EN 16931 takes it. S is any rate above zero. */
export const vatCategories = ["S", "Z", "E", "AE", "K", "G", "O"] as const;
export type VatCategory = (typeof vatCategories)[number];

export const Party = Type.Object({
  /** BT-27, BT-44 */
  name: nullableText,
  /** BT-28, BT-45 */
  trading_name: nullableText,
  /** BT-31, BT-48 */
  vat_id: nullableText,
  /** BT-32, of sellers */
  tax_number: nullableText,
  /** BT-30, BT-47, with the ISO 6523 scheme that it is of */
  registration_number: nullableText,
  registration_scheme: nullableText,
  /** BT-33, of sellers */
  legal_form: nullableText,
  /** BT-35, BT-50 */
  address_line1: nullableText,
  /** BT-36, BT-51 */
  address_line2: nullableText,
  /** BT-37, BT-52 */
  city: nullableText,
  /** BT-38, BT-53 */
  postal_code: nullableText,
  /** BT-39, BT-54 */
  region: nullableText,
  /** BT-40, BT-55 */
  country: nullableText,
  /** BT-34, BT-49, with its scheme */
  electronic_address: nullableText,
  electronic_address_scheme: nullableText,
  /** BT-41, BT-56 */
  contact_name: nullableText,
  /** BT-42, BT-57 */
  contact_phone: nullableText,
  /** BT-43, BT-58 */
  contact_email: nullableText,
});
export type Party = Static<typeof Party>;

const Period = Type.Object({ start: Type.String(), end: Type.String() });

export const DocumentLine = Type.Object({
  /** BT-126 */
  id: Type.String(),
  /** BT-153 */
  name: Type.String(),
  /** BT-154 */
  description: nullableText,
  /** BT-129 */
  quantity: Type.String(),
  /** BT-130: DAY for nights, C62 for one of anything */
  unit_code: Type.String(),
  /** BT-131 */
  net_amount: Type.String(),
  /** BT-146, of so many units as BT-149 says */
  price_amount: Type.String(),
  price_base_quantity: Type.String(),
  /** BT-151; null where no law of ours says it, which BR-CO-04 asks for */
  vat_category: Type.Union([oneOf(vatCategories), Type.Null()]),
  /** BT-152; null where the category has none */
  vat_rate: nullableText,
  further_vat_rates: Type.Array(Type.String(), {
    description: "of further general taxes on the same amount, of countries that have several",
  }),
  /** BG-26 */
  period: Type.Union([Period, Type.Null()]),
  /** The tax that the line charges; null for the room itself. */
  rule_id: nullableText,
});
export type DocumentLine = Static<typeof DocumentLine>;

export const VatBreakdown = Type.Object({
  tax_name: Type.Union([Type.String(), Type.Null()], { description: "the tax's own name; null where none is due" }),
  /** BT-118 */
  vat_category: oneOf(vatCategories),
  /** BT-119 */
  vat_rate: nullableText,
  /** BT-116 */
  taxable_amount: Type.String(),
  /** BT-117 */
  tax_amount: Type.String(),
  /** BT-121 */
  exemption_reason_code: nullableText,
  /** BT-120 */
  exemption_reason: nullableText,
});
export type VatBreakdown = Static<typeof VatBreakdown>;

export const InvoiceDocument = Type.Object({
  profile: Type.Object({
    compliant: Type.Boolean({ description: "false outside the countries of EN 16931: no e-invoice can be sent" }),
    /** BT-24 */
    customization_id: nullableText,
    /** BT-23 */
    process_id: nullableText,
    note: nullableText,
  }),
  type: oneOf(["invoice", "credit_note"]),
  /** BT-3 */
  type_code: Type.String(),
  /** BT-1; null until it is issued */
  number: nullableText,
  /** BT-2; null until it is issued */
  issue_date: nullableText,
  /** BT-9 */
  due_date: nullableText,
  /** BT-5 */
  currency: Type.String(),
  /** BT-10 */
  buyer_reference: nullableText,
  /** BT-13 */
  order_reference: nullableText,
  /** BT-12 */
  contract_reference: nullableText,
  /** BT-22 */
  note: nullableText,
  /** BG-3: the invoice that a credit note takes back */
  preceding_invoice: Type.Union([Type.Object({ number: Type.String(), issue_date: Type.String() }), Type.Null()]),
  /** BG-14: the stay */
  period: Type.Union([Period, Type.Null()]),
  seller: Party,
  buyer: Party,
  /** BT-80, for supplies within the Community alone */
  deliver_to_country: nullableText,
  payment: Type.Object({
    /** BT-81 */
    means_code: nullableText,
    /** BT-84 */
    account: nullableText,
    /** BT-83 */
    reference: nullableText,
    /** BT-20 */
    terms: nullableText,
  }),
  lines: Type.Array(DocumentLine),
  vat_breakdown: Type.Array(VatBreakdown),
  totals: Type.Object({
    /** BT-106 */
    line_net: Type.String(),
    /** BT-109 */
    without_vat: Type.String(),
    /** BT-110 */
    vat: Type.String(),
    /** BT-112 */
    with_vat: Type.String(),
    /** BT-113 */
    paid: nullableText,
    /** BT-115 */
    payable: Type.String(),
  }),
});
export type InvoiceDocument = Static<typeof InvoiceDocument>;

/** BT-24 and BT-23 of Peppol BIS Billing 3.0, which is within EN 16931. */
export const peppolCustomizationId = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0";
export const peppolProcessId = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0";
