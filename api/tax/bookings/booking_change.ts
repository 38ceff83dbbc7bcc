/**
 * Writes a change of a booking: the booking as it is now, the change, and the entries of the tax
 * ledger, by one statement.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { type AnySql, type Fragment, isLockedOut, json, type Sql } from "#store/sql.ts";
import type { CalculationAnswer } from "../calculator/calculation_answer.ts";
import type { CalculationRequest } from "../calculator/calculation_request.ts";
import { addDays } from "../calculator/law/calendar.ts";
import type { BookingState } from "./booking_lifecycle.ts";
import type { BookingRow } from "./booking_record.ts";
import { TaxDelta } from "./tax_delta.ts";

const kinds = ["created", "adjusted", "refunded", "voided"] as const;

/** A change as it is answered. */
export const BookingChange = named(
  "BookingChange",
  Type.Object({
    id: Type.Integer(),
    kind: oneOf(kinds),
    reason: nullableText,
    request: Type.Unknown({ description: "what was asked for" }),
    tax_delta: TaxDelta,
    refunded_amount: nullableText,
    idempotency_key: nullableText,
    created_at: Timestamp,
  }),
  {
    id: "its number; later changes have higher ones",
    kind: "what was done",
    reason: "why, as it was given; null where it was not",
    tax_delta: "what changed in the taxes",
    refunded_amount: "what went back to the guest; null where nothing did",
    idempotency_key: "the key that it was asked with; null for none",
  },
);
export type BookingChange = Static<typeof BookingChange>;

/** Changes of one booking that are answered, the latest ones. */
const changesMax = 200;

export async function changesOf(sql: AnySql, bookingId: string): Promise<BookingChange[]> {
  const rows = await sql<(Omit<BookingChange, "id"> & { id: string })[]>`
    select id, kind, reason, request, tax_delta, refunded_amount, idempotency_key, created_at
    from booking_changes where booking_id = ${bookingId} order by id desc limit ${changesMax}`;
  return rows.reverse().map((row) => ({ ...row, id: Number(row.id) }));
}

export interface NewChange {
  kind: (typeof kinds)[number];
  /** Kept as it was asked. */
  request: unknown;
  reason?: string | null | undefined;
  delta: TaxDelta;
  refundedAmount?: string | undefined;
  key?: { text: string; fingerprint: string } | undefined;
  by: BillableCaller;
  at: Date;
}

/** Columns of a booking that follow from its stay and the answer to it. */
export function figuresOf(request: CalculationRequest, answer: CalculationAnswer) {
  return {
    request,
    answer,
    stay_date: request.stay_date,
    checkout_date: addDays(request.stay_date, request.nights),
    total_tax: answer.tax_breakdown.total_tax,
    total_with_tax: answer.total_with_tax,
  };
}

/** Changes a booking that the transaction holds, and answers it as it is now. */
export async function changeBooking(
  tx: AnySql,
  booking: BookingRow,
  to: { state: BookingState; request: CalculationRequest; answer: CalculationAnswer; rulesetHash?: string },
  change: NewChange,
): Promise<BookingRow> {
  const figures = figuresOf(to.request, to.answer);
  const { rulesetHash = booking.ruleset_hash } = to;
  await writeChange(
    tx,
    tx`update bookings
       set state = ${to.state}, ruleset_hash = ${rulesetHash}, request = ${json(tx, figures.request)}, answer = ${json(tx, figures.answer)},
           stay_date = ${figures.stay_date}, checkout_date = ${figures.checkout_date},
           total_tax = ${figures.total_tax}, total_with_tax = ${figures.total_with_tax}, updated_at = ${change.at}
       where id = ${booking.id}
       returning id`,
    change,
  );
  return { ...booking, ...figures, state: to.state, ruleset_hash: rulesetHash, updated_at: change.at };
}

/**
 * Runs `booking`, a statement that returns the id of the booking that it wrote, and records the change.
 * Where it returns nothing, nothing is recorded.
 * @returns whether it did
 */
export async function writeChange(sql: AnySql, booking: Fragment, change: NewChange): Promise<boolean> {
  const { kind, request, reason, delta, refundedAmount, key, by, at } = change;
  const rows = await sql`
    with booking as (${booking}),
    change as (
      insert into booking_changes
        (booking_id, organization_id, environment, kind, reason, request, tax_delta, refunded_amount,
         idempotency_key, request_fingerprint, user_id, api_key_id, created_at)
      select id, ${by.organizationId}::uuid, ${by.environment}, ${kind}, ${reason ?? null}, ${json(sql, request)},
             ${json(sql, delta)}, ${refundedAmount ?? null}::numeric, ${key?.text ?? null},
             ${key?.fingerprint ?? null}, ${by.userId}::uuid, ${by.apiKeyId}::integer, ${at}::timestamptz
      from booking
      returning id, booking_id
    ),
    entries as (
      insert into tax_entries
        (change_id, booking_id, organization_id, environment, rule_id, version, jurisdiction_code, authority, kind,
         category_code, collector, currency, taxable_amount, tax_amount, recorded_at)
      select change.id, change.booking_id, ${by.organizationId}::uuid, ${by.environment}, rule_id, version,
             jurisdiction_code, authority, kind, category_code, collector, ${delta.currency}, taxable_amount,
             tax_amount, ${at}::timestamptz
      from change cross join json_to_recordset(${json(sql, delta.components)}) as component(
        rule_id text, version integer, jurisdiction_code text, authority text, kind text, category_code text,
        collector text, taxable_amount numeric, tax_amount numeric)
      where tax_amount <> 0 or taxable_amount <> 0
    )
    select id from booking`;
  return rows.length > 0;
}

/**
 * A transaction in which a request waits for another's lock, for as long as the pool's connections do.
 * @throws ApiError conflict when the other takes longer
 */
export async function changing<T>(sql: Sql, work: (tx: AnySql) => Promise<T>): Promise<T> {
  try {
    return (await sql.begin(work)) as T;
  } catch (error) {
    if (!isLockedOut(error)) throw error;
    throw new ApiError("conflict", { detail: "Another request for the same is in progress", cause: error });
  }
}
