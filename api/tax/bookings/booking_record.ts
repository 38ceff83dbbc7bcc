/** A booking as it is kept and as it is answered, and how a change takes hold of it. */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import type { AnySql } from "#store/sql.ts";
import { CalculationAnswer } from "../calculator/calculation_answer.ts";
import { CalculationRequest } from "../calculator/calculation_request.ts";
import { type BookingState, bookingStates } from "./booking_lifecycle.ts";

/** One row of `bookings`. Amounts are decimal strings, dates YYYY-MM-DD. */
export interface BookingRow {
  id: string;
  /** Order of creation. */
  position: string;
  organization_id: string;
  environment: BillableCaller["environment"];
  state: BookingState;
  external_reference: string | null;
  idempotency_key: string | null;
  request_fingerprint: string | null;
  /** The stay as it stands after the last change. */
  request: CalculationRequest;
  /** Its taxes. Those of a refunded or voided booking are nothing. */
  answer: CalculationAnswer;
  ruleset_hash: string;
  calculated_on: string;
  jurisdiction_code: string;
  currency: string;
  stay_date: string;
  checkout_date: string;
  total_tax: string;
  total_with_tax: string;
  issuer_id: string | null;
  invoice_details: Record<string, unknown> | null;
  created_at: Date;
  updated_at: Date;
}

/** All but the answer, which is long. */
export const summaryColumns = (sql: AnySql) =>
  sql`id, position, organization_id, environment, state, external_reference, idempotency_key, request_fingerprint,
      request, ruleset_hash, calculated_on::text, jurisdiction_code, currency, stay_date::text, checkout_date::text,
      total_tax, total_with_tax, issuer_id, invoice_details, created_at, updated_at`;

export const bookingColumns = (sql: AnySql) => sql`answer, ${summaryColumns(sql)}`;

/** Whose bookings: an organization's live or test ones, which never see each other. */
export type BookingOwner = Pick<BillableCaller, "organizationId" | "environment">;

/** @throws ApiError not_found for what does not exist or is another's */
export async function findBooking(sql: AnySql, principal: BookingOwner, id: string): Promise<BookingRow> {
  const rows = await sql<BookingRow[]>`
    select ${bookingColumns(sql)} from bookings
    where id = ${id} and organization_id = ${principal.organizationId} and environment = ${principal.environment}`;
  return found(rows);
}

/**
 * The booking, held until the transaction ends, so that changes to it come one after the other.
 * @throws ApiError not_found for what does not exist or is another's
 */
export async function lockBooking(tx: AnySql, principal: BookingOwner, id: string): Promise<BookingRow> {
  const rows = await tx<BookingRow[]>`
    select ${bookingColumns(tx)} from bookings
    where id = ${id} and organization_id = ${principal.organizationId} and environment = ${principal.environment}
    for update`;
  return found(rows);
}

function found([row]: readonly BookingRow[]): BookingRow {
  if (!row) throw new ApiError("not_found");
  return row;
}

/** Where the id in a path comes from, for the examples of the routes. */
export const fromCreation = { booking_id: { route: "POST /v1/bookings", field: "id" } };

const summaryFields = {
  id: Type.String({ format: "uuid" }),
  state: oneOf(bookingStates),
  environment: oneOf(["live", "test"]),
  external_reference: nullableText,
  idempotency_key: nullableText,
  issuer_id: nullableText,
  jurisdiction_code: Type.String(),
  stay_date: Type.String(),
  checkout_date: Type.String(),
  nights: Type.Integer(),
  currency: Type.String(),
  total_tax: Type.String(),
  total_with_tax: Type.String(),
  calculation: named("BookedStay", CalculationRequest),
  ruleset_hash: Type.String({ description: "of the rules that every change is calculated by" }),
  invoice_details: Type.Unsafe<Record<string, unknown> | null>({ type: ["object", "null"] }),
  created_at: Timestamp,
  updated_at: Timestamp,
};
/** A booking in a list. */
export const BookingSummary = named("BookingSummary", Type.Object(summaryFields), {
  state: "what has become of it",
  environment: "`live`, or `test` by test keys",
  external_reference: "its number in your own system",
  idempotency_key: "the key that it was made with",
  issuer_id: "who writes its invoice; null: the organization",
  stay_date: "the day of arrival",
  checkout_date: "the day of departure",
  nights: "how many",
  total_tax: "all taxes of the stay",
  total_with_tax: "what the guest pays",
  calculation: "what the tax is calculated of, changes included",
  invoice_details: "what its invoice says besides; null where nothing is set",
});
export type BookingSummary = Static<typeof BookingSummary>;

export const BookingReply = named(
  "Booking",
  Type.Object({
    ...BookingSummary.properties,
    result: CalculationAnswer,
  }),
  {
    result: "what `/v1/tax/calculate` answers, as it stands now",
  },
);
export type BookingReply = Static<typeof BookingReply>;

export function bookingSummary(row: Omit<BookingRow, "answer" | "position">): BookingSummary {
  return {
    id: row.id,
    state: row.state,
    environment: row.environment,
    external_reference: row.external_reference,
    idempotency_key: row.idempotency_key,
    issuer_id: row.issuer_id,
    jurisdiction_code: row.jurisdiction_code,
    stay_date: row.stay_date,
    checkout_date: row.checkout_date,
    nights: row.request.nights,
    currency: row.currency,
    total_tax: row.total_tax,
    total_with_tax: row.total_with_tax,
    calculation: row.request,
    ruleset_hash: row.ruleset_hash,
    invoice_details: row.invoice_details,
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
}

export function bookingReply(row: Omit<BookingRow, "position">): BookingReply {
  return { ...bookingSummary(row), result: row.answer };
}
