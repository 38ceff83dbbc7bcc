/**
 * What a booking does not know and its invoice says: who buys, under which reference, how it is
 * paid. Kept with the booking until a live invoice freezes it.
 */

import { type Static, type TSchema, type TUnsafe, Type } from "@sinclair/typebox";
import { legalFields, legalWords } from "#accounts/legal_profile.ts";
import { type Named, named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { invalidRequest } from "#http/validation.ts";
import { Rational } from "../calculator/numbers/rational.ts";
import { isCalendarDate } from "../rules/ruleset.ts";
import { isPaymentMeans, isVatExemptionCode } from "./code_lists.ts";
import { isDocumentText } from "./document_text.ts";

const text = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: "\\S", description: "text that is not blank" });

const buyerFields = {
  name: text(200),
  trading_name: text(200),
  vat_id: legalFields.vat_id,
  registration_number: legalFields.registration_number,
  registration_scheme: legalFields.registration_scheme,
  address_line1: legalFields.address_line1,
  address_line2: legalFields.address_line2,
  city: legalFields.city,
  region: legalFields.region,
  postal_code: legalFields.postal_code,
  country: legalFields.country,
  electronic_address: legalFields.electronic_address,
  electronic_address_scheme: legalFields.electronic_address_scheme,
  contact_name: legalFields.contact_name,
  contact_email: legalFields.contact_email,
  contact_phone: legalFields.contact_phone,
} as const;

const VatExemption = named(
  "VatExemption",
  Type.Object(
    {
      category: oneOf(["E", "Z", "AE", "K", "G", "O"]),
      reason_code: Type.Optional(Type.String({ maxLength: 40, description: "a VATEX code" })),
      reason: Type.Optional(text(500)),
    },
    { description: "Why the room bears no VAT, where none was calculated" },
  ),
  {
    category:
      "the category of EN 16931: E exempt, Z zero rate, AE reverse charge, K within the Community, G export, O outside",
    reason: "the same in words",
  },
);

const ownWords = {
  buyer_reference: "what the buyer wants to see, such as a Leitweg-ID",
  order_reference: "number of the buyer's order",
  contract_reference: "number of the contract",
  note: "a text on the invoice",
  payment_terms: "when and how to pay, in place of the issuer's",
  payment_due_date: "the day until which it is to be paid",
  payment_means_code: "how it is paid",
  payment_reference: "what the buyer writes on the payment",
  paid_amount: "what is paid already",
  buyer: "who buys",
  vat_exemption: "why the room bears no VAT",
} as const;

const ownFields = {
  buyer_reference: text(200),
  order_reference: text(200),
  contract_reference: text(200),
  note: text(1000),
  payment_terms: text(500),
  payment_due_date: Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "a date as YYYY-MM-DD" }),
  payment_means_code: Type.String({ pattern: "^[0-9A-Z]{1,3}$", description: "a code of UNTDID 4461" }),
  payment_reference: text(140),
  paid_amount: Type.String({
    pattern: "^\\d{1,12}(\\.\\d{1,3})?$",
    description: "what is paid already, digits as a string",
  }),
} as const;

const buyerWords = { ...legalWords, name: "the buyer's name as the register has it" };

type BuyerDetails = { [Name in keyof typeof buyerFields]?: Static<(typeof buyerFields)[Name]> };
type OwnDetails = { [Name in keyof typeof ownFields]?: Static<(typeof ownFields)[Name]> } & {
  vat_exemption?: Static<typeof VatExemption>;
};
/** What is stored: the fields that are set. */
export type InvoiceDetails = OwnDetails & { buyer?: BuyerDetails };

type Change<Fields> = { [Name in keyof Fields]?: Fields[Name] | null | undefined };

const changeOf = (fields: Readonly<Record<string, TSchema>>) =>
  Type.Object(
    Object.fromEntries(
      Object.entries(fields).map(([name, schema]) => [
        name,
        Type.Optional(
          Type.Union([schema, Type.Null()], {
            ...(schema.description ? { description: `${schema.description}, or null` } : {}),
          }),
        ),
      ]),
    ),
  );

type DetailsChange = Change<Required<OwnDetails>> & { buyer?: Change<Required<BuyerDetails>> | null };

const ChangeSchema = named(
  "InvoiceDetailsChange",
  Type.Composite([
    changeOf(ownFields),
    Type.Object({
      buyer: Type.Optional(Type.Union([named("Buyer", changeOf(buyerFields), buyerWords), Type.Null()])),
      vat_exemption: Type.Optional(Type.Union([VatExemption, Type.Null()])),
    }),
  ]),
  ownWords,
);
/** Fields are set with a value and cleared with null; the buyer's are set one by one. */
export const InvoiceDetailsChange = ChangeSchema as unknown as Named<TUnsafe<DetailsChange>>;
export type InvoiceDetailsChange = DetailsChange;

/**
 * Checks of a change what its schema cannot tell.
 * @throws ApiError bad_request with the field
 */
export function checkInvoiceDetails(change: InvoiceDetailsChange): void {
  const { buyer, vat_exemption: exemption, payment_due_date: due, payment_means_code: means } = change;
  requireDocumentText(change, ownFields);
  requireDocumentText(buyer ?? {}, buyerFields, "buyer.");
  requireDocumentText(exemption ?? {}, VatExemption.properties, "vat_exemption.");
  if (typeof due === "string" && !isCalendarDate(due)) {
    throw invalidRequest("body", "payment_due_date", `Expected a day of the calendar, got ${due}`);
  }
  if (typeof means === "string" && !isPaymentMeans(means)) {
    throw invalidRequest("body", "payment_means_code", "Expected a code of UNTDID 4461, for example 30");
  }
  if (exemption?.reason_code !== undefined && !isVatExemptionCode(exemption.reason_code)) {
    throw invalidRequest("body", "vat_exemption.reason_code", "Expected a VATEX code, for example VATEX-EU-AE");
  }
}

/** @throws ApiError bad_request with the first of the known fields whose text no document can hold */
export function requireDocumentText(texts: object, known: object, under = ""): void {
  for (const [name, value] of Object.entries(texts)) {
    if (!(name in known) || typeof value !== "string" || isDocumentText(value)) continue;
    throw invalidRequest("body", `${under}${name}`, "Expected text without control characters");
  }
}

/** Whether more is said to be paid than the booking comes to. Nobody pays an invoice over: what is over is a refund. */
export function isOverpaid(
  paidAmount: string | null | undefined,
  { total_with_tax: total }: { total_with_tax: string },
) {
  return paidAmount != null && Rational.parse(paidAmount).compare(Rational.parse(total)) > 0;
}

/** The details with a checked change made. */
export function changedInvoiceDetails(details: InvoiceDetails, change: InvoiceDetailsChange): InvoiceDetails {
  const buyer = change.buyer === null ? undefined : merged(buyerFields, details.buyer ?? {}, change.buyer ?? {});
  const own = merged({ ...ownFields, vat_exemption: VatExemption }, details, change);
  return { ...own, ...(buyer && Object.keys(buyer).length > 0 ? { buyer } : {}) };
}

function merged<T extends object>(fields: object, before: T, change: object): T {
  const known = Object.entries({ ...before, ...change }).filter(
    ([name, value]) => name in fields && value !== null && value !== undefined,
  );
  return Object.fromEntries(known) as T;
}
