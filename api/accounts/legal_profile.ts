/**
 * Who sells, as an invoice names it: the legal fields of an organization, and of each further
 * issuer. A field is set with a value and cleared with null.
 */

import { FormatRegistry, type Static, type TSchema, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { invalidRequest } from "#http/validation.ts";
import { CountryCode } from "./country_code.ts";

const text = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: "\\S", description: "text that is not blank" });

FormatRegistry.Set("iban", isIban);

/** Every field, as it may be set. */
export const legalFields = {
  legal_name: text(200),
  trading_name: text(200),
  legal_form: text(200),
  vat_id: Type.String({ pattern: "^[A-Z]{2}[0-9A-Za-z+*.]{2,13}$", description: "a VAT id with its country prefix" }),
  vat_status: oneOf(["registered", "small_business"]),
  tax_number: text(50),
  registration_number: text(50),
  registration_scheme: Type.String({ pattern: "^[0-9]{4}$", description: "an ISO 6523 scheme of four digits" }),
  address_line1: text(200),
  address_line2: text(200),
  city: text(100),
  region: text(100),
  postal_code: text(20),
  country: CountryCode,
  electronic_address: text(200),
  electronic_address_scheme: Type.String({ pattern: "^(EM|[0-9]{4})$", description: "an EAS code" }),
  contact_name: text(200),
  contact_email: text(254),
  contact_phone: text(50),
  iban: Type.String({ format: "iban", description: "an IBAN without spaces, with check digits that fit" }),
  payment_terms: text(500),
  time_zone: Type.String({ minLength: 1, maxLength: 64, description: "an IANA time zone" }),
  invoice_series: Type.String({
    pattern: "^[0-9A-Za-z][0-9A-Za-z/_-]{0,19}$",
    description: "1 to 20 of A-Z a-z 0-9 / _ -",
  }),
} as const;
type FieldName = keyof typeof legalFields;

/** What each field is, for readers. */
export const legalWords: Readonly<Record<FieldName, string>> = {
  legal_name: "the name as the register has it",
  trading_name: "the name that guests know",
  legal_form: "such as GmbH or SRL",
  vat_id: "VAT identification number",
  vat_status: "`small_business` where the law lets it off VAT by its size; counts for bookings from then on",
  tax_number: "number at the local tax office",
  registration_number: "number in the register of companies",
  registration_scheme: "the register, for e-invoices",
  address_line1: "street and number",
  address_line2: "what else the address needs",
  city: "town",
  region: "state, province or county",
  postal_code: "postcode",
  country: "the country",
  electronic_address: "where e-invoices reach the party",
  electronic_address_scheme: "what kind of address that is: EM for e-mail",
  contact_name: "person or department for questions",
  contact_email: "their e-mail address",
  contact_phone: "their telephone number",
  iban: "the bank account that is paid to",
  payment_terms: "when and how to pay, as it stands on invoices",
  time_zone: "where the business is: decides an invoice's date",
  invoice_series: "what invoice numbers begin with",
};

/** What is stored: the fields that are set. */
export type LegalProfile = { [Name in FieldName]?: Static<(typeof legalFields)[Name]> };

type Nullable = { [Name in FieldName]: string | null };
const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()], describedAs(schema));
const describedAs = (schema: TSchema) => (schema.description ? { description: `${schema.description}, or null` } : {});

export const LegalProfileChange = named(
  "LegalProfileChange",
  Type.Object(
    Object.fromEntries(
      Object.entries(legalFields).map(([name, schema]) => [name, Type.Optional(nullable(schema as TSchema))]),
    ),
    { minProperties: 0 },
  ),
  legalWords,
);

/** Every field, null where it is not set. */
export const LegalProfileReply = named(
  "LegalProfile",
  Type.Object(
    Object.fromEntries(
      Object.keys(legalFields).map((name) => [name, Type.Unsafe<string | null>({ type: ["string", "null"] })]),
    ) as { [Name in FieldName]: ReturnType<typeof Type.Unsafe<string | null>> },
  ),
  legalWords,
);

/** A seller, as the documentation shows one. */
export const exampleLegalProfile: LegalProfile = {
  legal_name: "Gasthof am See GmbH",
  trading_name: "The Inn at the Lake",
  vat_id: "DE123456789",
  address_line1: "Seestrasse 1",
  city: "Berlin",
  postal_code: "10115",
  country: "DE",
  electronic_address: "invoices@inn.example",
  electronic_address_scheme: "EM",
  contact_name: "Anna Huber",
  contact_email: "anna@inn.example",
  contact_phone: "+49 30 1234567",
  iban: "DE89370400440532013000",
  payment_terms: "Paid on departure",
  time_zone: "Europe/Berlin",
  invoice_series: "INN",
};

export function wholeLegalProfile(profile: LegalProfile): Nullable {
  return Object.fromEntries(
    Object.keys(legalFields).map((name) => [name, profile[name as FieldName] ?? null]),
  ) as Nullable;
}

/** The profile with a change made: null clears, what the change does not name stays. @throws ApiError bad_request */
export function changedLegalProfile(profile: LegalProfile, change: Readonly<Record<string, unknown>>): LegalProfile {
  const named = Object.entries(change).filter(([name, value]) => name in legalFields && value !== undefined);
  const zone = change.time_zone;
  if (typeof zone === "string" && !isTimeZone(zone)) {
    throw invalidRequest("body", "time_zone", "Expected an IANA time zone, for example Europe/Berlin");
  }
  return Object.fromEntries(
    Object.entries({ ...profile, ...Object.fromEntries(named) }).filter(([, value]) => value !== null),
  ) as LegalProfile;
}

/** ISO 13616: the check digits make the number, its letters as 10 to 35 and its head at the end, 1 modulo 97. */
function isIban(text: string): boolean {
  if (!/^[A-Z]{2}[0-9]{2}[0-9A-Z]{8,30}$/.test(text)) return false;
  const digits = [...text.slice(4), ...text.slice(0, 4)].map((sign) => Number.parseInt(sign, 36)).join("");
  return BigInt(digits) % 97n === 1n;
}

function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}
