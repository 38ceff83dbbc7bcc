/**
 * An invoice or credit note as EN 16931 sees one: its business terms under names of ours, each with
 * its number (BT-…) beside it. The checks read it, UBL is written from it, and it is kept as issued.
 * Amounts are decimal strings, dates YYYY-MM-DD; what is not known is null.
 */

import { type Static, Type } from "@sinclair/typebox";
import { legalWords } from "#accounts/legal_profile.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText } from "#http/timestamp.ts";

/** UNTDID 5305, as far as EN 16931 takes it. S is any rate above zero. */
export const vatCategories = ["S", "Z", "E", "AE", "K", "G", "O"] as const;
export type VatCategory = (typeof vatCategories)[number];

export const Party = named(
  "Party",
  Type.Object({
    name: nullableText,
    trading_name: nullableText,
    vat_id: nullableText,
    tax_number: nullableText,
    registration_number: nullableText,
    registration_scheme: nullableText,
    legal_form: nullableText,
    address_line1: nullableText,
    address_line2: nullableText,
    city: nullableText,
    postal_code: nullableText,
    region: nullableText,
    country: nullableText,
    electronic_address: nullableText,
    electronic_address_scheme: nullableText,
    contact_name: nullableText,
    contact_phone: nullableText,
    contact_email: nullableText,
  }),
  { ...legalWords, name: "as the register has it (BT-27, BT-44)" },
);
export type Party = Static<typeof Party>;

const Period = named("InvoicePeriod", Type.Object({ start: Type.String(), end: Type.String() }), {
  start: "first day",
  end: "last day",
});

export const DocumentLine = named(
  "InvoiceLine",
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    description: nullableText,
    quantity: Type.String(),
    unit_code: Type.String(),
    net_amount: Type.String(),
    price_amount: Type.String(),
    price_base_quantity: Type.String(),
    vat_category: Type.Union([oneOf(vatCategories), Type.Null()]),
    vat_rate: nullableText,
    further_vat_rates: Type.Array(Type.String(), {
      description: "of further general taxes on the same amount, of countries that have several",
    }),
    period: Type.Union([Period, Type.Null()]),
    /** The tax that the line charges; null for the room itself. */
    rule_id: nullableText,
  }),
  {
    id: "the line's number (BT-126)",
    name: "what is charged (BT-153)",
    description: "more of it (BT-154)",
    quantity: "how many units (BT-129)",
    unit_code: "DAY for nights, C62 for one of anything (BT-130)",
    net_amount: "without VAT (BT-131)",
    price_amount: "of so many units as price_base_quantity says (BT-146)",
    price_base_quantity: "units that the price is for (BT-149)",
    vat_category: "of UNTDID 5305 (BT-151); null where no law of ours says it",
    vat_rate: "percent (BT-152); null where the category has none",
    period: "the nights of the line (BG-26)",
    rule_id: "the tax that the line charges; null for the room itself",
  },
);
export type DocumentLine = Static<typeof DocumentLine>;

export const VatBreakdown = named(
  "VatBreakdown",
  Type.Object({
    tax_name: Type.Union([Type.String(), Type.Null()], { description: "the tax's own name; null where none is due" }),
    vat_category: oneOf(vatCategories),
    vat_rate: nullableText,
    taxable_amount: Type.String(),
    tax_amount: Type.String(),
    exemption_reason_code: nullableText,
    exemption_reason: nullableText,
  }),
  {
    vat_category: "of UNTDID 5305 (BT-118)",
    vat_rate: "percent (BT-119); null where the category has none",
    taxable_amount: "what the tax is taken of (BT-116)",
    tax_amount: "the tax (BT-117)",
    exemption_reason_code: "a VATEX code (BT-121)",
    exemption_reason: "the same in words (BT-120)",
  },
);
export type VatBreakdown = Static<typeof VatBreakdown>;

export const InvoiceDocument = named(
  "InvoiceDocument",
  Type.Object({
    profile: named(
      "InvoiceProfile",
      Type.Object({
        compliant: Type.Boolean({ description: "false outside the countries of EN 16931: no e-invoice can be sent" }),
        customization_id: nullableText,
        process_id: nullableText,
        note: nullableText,
      }),
      {
        customization_id: "BT-24; null where it is none of Peppol's",
        process_id: "BT-23; null where it is none of Peppol's",
        note: "why it is no e-invoice, where it is none",
      },
    ),
    type: oneOf(["invoice", "credit_note"]),
    type_code: Type.String(),
    number: nullableText,
    issue_date: nullableText,
    due_date: nullableText,
    currency: Type.String(),
    buyer_reference: nullableText,
    order_reference: nullableText,
    contract_reference: nullableText,
    note: nullableText,
    preceding_invoice: Type.Union([
      named("PrecedingInvoice", Type.Object({ number: Type.String(), issue_date: Type.String() }), {
        number: "its number",
        issue_date: "its date, YYYY-MM-DD",
      }),
      Type.Null(),
    ]),
    period: Type.Union([Period, Type.Null()]),
    seller: Party,
    buyer: Party,
    deliver_to_country: nullableText,
    payment: named(
      "InvoicePayment",
      Type.Object({
        means_code: nullableText,
        account: nullableText,
        reference: nullableText,
        terms: nullableText,
      }),
      {
        means_code: "of UNTDID 4461 (BT-81)",
        account: "the account that is paid to (BT-84)",
        reference: "what the buyer writes on the payment (BT-83)",
        terms: "when and how to pay (BT-20)",
      },
    ),
    lines: Type.Array(DocumentLine),
    vat_breakdown: Type.Array(VatBreakdown),
    totals: named(
      "InvoiceTotals",
      Type.Object({
        line_net: Type.String(),
        without_vat: Type.String(),
        vat: Type.String(),
        with_vat: Type.String(),
        paid: nullableText,
        payable: Type.String(),
      }),
      {
        line_net: "sum of the lines (BT-106)",
        without_vat: "BT-109",
        vat: "BT-110",
        with_vat: "BT-112",
        paid: "what is paid already (BT-113)",
        payable: "what is left to pay (BT-115)",
      },
    ),
  }),
  {
    profile: "the form of e-invoice",
    type: "an invoice, or a credit note that takes one back",
    type_code: "of UNTDID 1001 (BT-3)",
    number: "BT-1; null until it is issued",
    issue_date: "YYYY-MM-DD in the issuer's time zone (BT-2); null until it is issued",
    due_date: "until when it is to be paid (BT-9)",
    currency: "ISO 4217 code (BT-5)",
    buyer_reference: "what the buyer wants to see (BT-10)",
    order_reference: "the buyer's order (BT-13)",
    contract_reference: "the contract (BT-12)",
    note: "a text on the invoice (BT-22)",
    preceding_invoice: "the invoice that a credit note takes back (BG-3)",
    period: "the stay (BG-14)",
    seller: "who sells",
    buyer: "who buys",
    deliver_to_country: "for supplies within the Community alone (BT-80)",
    payment: "how it is paid",
    lines: "what is charged",
    vat_breakdown: "VAT by category and rate",
    totals: "the sums",
  },
);
export type InvoiceDocument = Static<typeof InvoiceDocument>;

export const peppolCustomizationId = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0";
export const peppolProcessId = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0";
