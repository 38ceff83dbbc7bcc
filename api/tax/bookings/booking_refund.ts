/**
 * `POST /v1/bookings/{id}/refund`: all of a booking, its last nights, or an amount of money. With a
 * key a refund takes effect once; sent again it is answered the tax delta that it had then.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import { invalidRequest } from "#http/validation.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { type AnySql, violates } from "#store/sql.ts";
import { calculateWith } from "../calculator/calculate.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { parseExactJson } from "../calculator/numbers/exact_json.ts";
import { Rational } from "../calculator/numbers/rational.ts";
import { refuseWhenFrozen } from "../invoices/live_invoice.ts";
import { changeBooking, changing, type NewChange } from "./booking_change.ts";
import type { BookingDeps } from "./booking_deps.ts";
import { requireOpen } from "./booking_lifecycle.ts";
import { type BookingRow, bookingReply, findBooking, fromCreation, lockBooking } from "./booking_record.ts";
import { ChangedBooking, Reason } from "./changed_booking.ts";
import { IdempotencyKey, keyReused, replayed } from "./idempotency.ts";
import { afterRefund, RefundProblem } from "./refund_terms.ts";
import { amountText, fingerprintOf } from "./request_fingerprint.ts";
import { type TaxDelta, taxDelta } from "./tax_delta.ts";

const Refund = named(
  "BookingRefund",
  Type.Object({
    refund_idempotency_key: Type.Optional(IdempotencyKey),
    nights: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 366,
        description: "how many of the last nights; without, and without amount: all",
      }),
    ),
    amount: Type.Optional(
      Type.Union(
        [
          Type.Number({ exclusiveMinimum: 0, maximum: 1e15 }),
          Type.String({ pattern: "^(?!0+(\\.0+)?$)\\d{1,15}(\\.\\d{1,18})?$" }),
        ],
        { description: "a number greater than 0, or its digits: what goes back to the guest, tax included" },
      ),
    ),
    currency: Type.Optional(Type.String({ pattern: "^[A-Z]{3}$", description: "an ISO 4217 code, the booking's" })),
    reason: Type.Optional(Reason),
  }),
  {
    refund_idempotency_key: "a repeated request with the same key refunds nothing more",
    nights: "nights that are not stayed",
    amount: "an amount in place of nights",
    currency: "of the amount: the booking's",
    reason: "why, for the record",
  },
);
type Refund = Static<typeof Refund>;

const RefundedBooking = named(
  "RefundedBooking",
  Type.Object({
    ...ChangedBooking.properties,
    refunded_amount: Type.String({ description: "what goes back to the guest by this refund, tax included" }),
  }),
);

export function bookingRefundRoute(deps: BookingDeps): Route {
  const { sql, guard, record } = deps;
  return route({
    method: "POST",
    path: "/v1/bookings/{booking_id}/refund",
    summary: "Refund a booking, some of its nights or an amount; answers the tax that is given back",
    guard,
    record,
    body: Refund,
    strictBody: true,
    bodyOptions: { parse: parseExactJson },
    reply: { status: 200, body: RefundedBooking },
    errors: ["bad_request", "conflict"],
    paramsFrom: fromCreation,
    examples: {
      all: { body: { reason: "The road was closed" } },
      one_night_back: { body: { refund_idempotency_key: "pms-1042-r1", nights: 1, reason: "Left a day early" } },
      an_amount: { body: { amount: "50.00", currency: "EUR" } },
      in_another_currency: {
        body: { amount: "10.00", currency: "USD" },
        status: 400,
        answer: { detail: "currency mismatch: the booking is in EUR, the refund in USD" },
      },
      more_nights_than_booked: {
        body: { nights: 9 },
        status: 400,
        answer: { detail: "Cannot refund 9 nights: 3 are left" },
      },
    },
    handle: async ({ principal, params, body }) => {
      if (body.nights !== undefined && body.amount !== undefined) {
        throw invalidRequest("body", "amount", "Expected either nights or amount");
      }
      const booking = await findBooking(sql, principal, params.booking_id);
      requireCurrency(booking, body);
      const key = keyOf(booking, body);
      const earlier = key && (await refundedWith(sql, principal, key));
      const done = earlier ?? (await refund(deps, principal, booking.id, body, key));
      const current = done.booking ?? (await findBooking(sql, principal, booking.id));
      const { tax_delta, refunded_amount } = done;
      const reply = { ...bookingReply(current), tax_delta, refunded_amount };
      return done.booking ? reply : replayed(reply);
    },
  });
}

/** A refund with the booking that it left, or one that had been made before. */
interface Refunded {
  booking?: BookingRow;
  tax_delta: TaxDelta;
  refunded_amount: string;
}

type Key = NonNullable<NewChange["key"]>;

async function refund(
  deps: BookingDeps,
  principal: BillableCaller,
  bookingId: string,
  body: Refund,
  key: Key | undefined,
): Promise<Refunded> {
  const work = async (tx: AnySql): Promise<Refunded> => {
    const booking = await lockBooking(tx, principal, bookingId);
    // A twin may have been at it while this one waited.
    const earlier = key && (await refundedWith(tx, principal, key));
    if (earlier) return earlier;
    await refuseWhenFrozen(tx, booking.id);
    requireOpen(booking, "refund");
    const rules = await deps.frozenRules.read(tx, booking.ruleset_hash);
    const left = refusingRefund(() =>
      afterRefund(booking, body, (request) => calculateWith(rules, request, booking.calculated_on)),
    );
    const delta = taxDelta(booking.answer, left.answer);
    const { refund_idempotency_key: _, reason, ...request } = body;
    const change: NewChange = {
      kind: "refunded",
      request,
      reason,
      delta,
      refundedAmount: left.refundedAmount,
      key,
      by: principal,
      at: deps.now(),
    };
    const refunded = await changeBooking(tx, booking, left, change);
    return { booking: refunded, tax_delta: delta, refunded_amount: left.refundedAmount };
  };
  try {
    return await changing(deps.sql, work);
  } catch (error) {
    // The same key at the same time for another booking.
    if (violates(error, "booking_changes_idempotency_key_key")) throw keyReused("refund_idempotency_key");
    throw error;
  }
}

function keyOf(booking: BookingRow, body: Refund): Key | undefined {
  const { refund_idempotency_key: text, nights, amount, reason = null } = body;
  if (!text) return undefined;
  const money = amount === undefined ? null : amountText(amount);
  return { text, fingerprint: fingerprintOf({ booking: booking.id, nights, amount: money, reason }) };
}

/**
 * The refund that was made with the key.
 * @throws ApiError conflict when it was another one
 */
async function refundedWith(sql: AnySql, caller: BillableCaller, key: Key): Promise<Refunded | undefined> {
  const [row] = await sql<{ request_fingerprint: string; tax_delta: TaxDelta; refunded_amount: string }[]>`
    select request_fingerprint, tax_delta, refunded_amount from booking_changes
    where organization_id = ${caller.organizationId} and environment = ${caller.environment}
      and idempotency_key = ${key.text}`;
  if (row && row.request_fingerprint !== key.fingerprint) throw keyReused("refund_idempotency_key");
  return row && { tax_delta: row.tax_delta, refunded_amount: row.refunded_amount };
}

function requireCurrency(booking: BookingRow, { currency, amount }: Refund): void {
  if (currency !== undefined && currency !== booking.currency) {
    throw new ApiError("bad_request", {
      detail: `currency mismatch: the booking is in ${booking.currency}, the refund in ${currency}`,
    });
  }
  const digits = minorDigitsOf(booking.currency);
  if (amount !== undefined && Rational.parse(amount).compare(Rational.parse(Rational.parse(amount).toFixed(digits)))) {
    throw invalidRequest("body", "amount", `Expected at most ${digits} decimals, as ${booking.currency} has`);
  }
}

function refusingRefund<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof RefundProblem)) throw error;
    throw new ApiError("bad_request", { detail: error.message, cause: error });
  }
}
