/**
 * Bookings: `/v1/bookings`. Creating, adjusting, refunding and voiding stand in files of their own;
 * here is what they share, and reading.
 */

import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { timeBoundsOf, timeRangeQuery } from "#http/time_range.ts";
import { invalidRequest } from "#http/validation.ts";
import { recheckRoutes } from "../recheck/recheck.ts";
import { isCalendarDate } from "../rules/ruleset.ts";
import { bookingAdjustmentRoute } from "./booking_adjustment.ts";
import { BookingChange, changesOf } from "./booking_change.ts";
import { bookingCreationRoute } from "./booking_creation.ts";
import type { BookingDeps } from "./booking_deps.ts";
import { bookingStates } from "./booking_lifecycle.ts";
import {
  BookingReply,
  type BookingRow,
  BookingSummary,
  bookingReply,
  bookingSummary,
  findBooking,
  fromCreation,
  summaryColumns,
} from "./booking_record.ts";
import { bookingRefundRoute } from "./booking_refund.ts";
import { bookingVoidRoute } from "./booking_void.ts";

const BookingPage = named(
  "BookingPage",
  Type.Object({
    items: Type.Array(BookingSummary),
    next_cursor: Type.Unsafe<number | null>({ type: ["integer", "null"], description: "null on the last page" }),
  }),
  {
    items: "the latest first",
    next_cursor: "`cursor` of the next page",
  },
);

const BookingWithChanges = named(
  "BookingWithChanges",
  Type.Object({
    ...BookingReply.properties,
    changes: Type.Array(BookingChange, { description: "from its creation on, the latest 200" }),
  }),
  {
    changes: "what happened to it",
  },
);

const date = (description: string) => Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description }));

export function bookingRoutes(deps: BookingDeps): Route[] {
  const { sql, guard } = deps;
  return [
    bookingCreationRoute(deps),
    route({
      method: "GET",
      path: "/v1/bookings",
      summary: "List bookings, the newest first, without their results",
      guard,
      query: {
        state: Type.Optional({ ...oneOf(bookingStates), about: "those in this state" }),
        external_reference: Type.Optional(Type.String({ maxLength: 200, about: "the number in your own system" })),
        stay_from: date("a date as YYYY-MM-DD: the earliest stay_date"),
        stay_to: date("a date as YYYY-MM-DD: the latest stay_date"),
        ...timeRangeQuery("created_at"),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "default 50" })),
        cursor: Type.Optional(
          Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: "next_cursor of the page before" }),
        ),
      },
      reply: { status: 200, body: BookingPage },
      errors: ["bad_request"],
      examples: {
        newest: { query: { limit: 20 } },
        by_reference: { query: { external_reference: "PMS-1042", state: "confirmed" } },
        of_guests_who_arrive_in_may: { query: { stay_from: "2026-05-01", stay_to: "2026-05-31" } },
        made_this_year: { query: { "created_at:gte": "2026-01-01T00:00:00Z" } },
      },
      handle: async ({ principal, query }) => {
        const { state, external_reference: reference, stay_from: from, stay_to: to, cursor, limit = 50 } = query;
        requireDates({ stay_from: from, stay_to: to });
        const created = timeBoundsOf(query, "created_at").map(
          ({ comparison, at }) => sql`and created_at ${sql.unsafe(comparison)} ${at}`,
        );
        const rows = await sql<Omit<BookingRow, "answer">[]>`
          select ${summaryColumns(sql)} from bookings
          where organization_id = ${principal.organizationId} and environment = ${principal.environment}
            ${state === undefined ? sql`` : sql`and state = ${state}`}
            ${reference === undefined ? sql`` : sql`and external_reference = ${reference}`}
            ${from === undefined ? sql`` : sql`and stay_date >= ${from}`}
            ${to === undefined ? sql`` : sql`and stay_date <= ${to}`}
            ${cursor === undefined ? sql`` : sql`and position < ${cursor}`}
            ${created.length > 0 ? created : sql``}
          order by position desc limit ${limit + 1}`;
        const page = rows.slice(0, limit);
        const last = rows.length > limit ? page.at(-1) : undefined;
        return { items: page.map(bookingSummary), next_cursor: last ? Number(last.position) : null };
      },
    }),
    route({
      method: "GET",
      path: "/v1/bookings/{booking_id}",
      summary: "Get a booking with its result and its changes",
      guard,
      reply: { status: 200, body: BookingWithChanges },
      paramsFrom: fromCreation,
      examples: { a_booking: {} },
      handle: async ({ principal, params }) => {
        const booking = await findBooking(sql, principal, params.booking_id);
        return { ...bookingReply(booking), changes: await changesOf(sql, booking.id) };
      },
    }),
    bookingAdjustmentRoute(deps),
    bookingRefundRoute(deps),
    bookingVoidRoute(deps),
    ...recheckRoutes(deps),
  ];
}

/** @throws ApiError 422 that names a field which is no day of the calendar */
export function requireDates(dates: Readonly<Record<string, string | undefined>>): void {
  for (const [field, text] of Object.entries(dates)) {
    if (text !== undefined && !isCalendarDate(text)) {
      throw invalidRequest("query", field, `Expected a day of the calendar, got ${text}`);
    }
  }
}
