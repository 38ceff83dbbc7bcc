/** `POST /v1/bookings/{id}/void`: the stay does not take place and nothing of its tax is due. */

import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import { refuseWhenFrozen } from "../invoices/live_invoice.ts";
import { changeBooking, changing } from "./booking_change.ts";
import type { BookingDeps } from "./booking_deps.ts";
import { requireOpen } from "./booking_lifecycle.ts";
import { bookingReply, fromCreation, lockBooking } from "./booking_record.ts";
import { ChangedBooking, Reason } from "./changed_booking.ts";
import { nothingDue, taxDelta } from "./tax_delta.ts";

export function bookingVoidRoute({ sql, guard, record, now }: BookingDeps): Route {
  return route({
    method: "POST",
    path: "/v1/bookings/{booking_id}/void",
    summary: "Void a booking: all of its tax is given back",
    guard,
    record,
    body: named("BookingVoid", Type.Object({ reason: Type.Optional(Reason) }), {
      reason: "why, for the record",
    }),
    strictBody: true,
    reply: { status: 200, body: ChangedBooking },
    errors: ["conflict"],
    paramsFrom: fromCreation,
    examples: { entered_twice: { body: { reason: "Entered twice" } } },
    handle: ({ principal, params, body }) =>
      changing(sql, async (tx) => {
        const booking = await lockBooking(tx, principal, params.booking_id);
        await refuseWhenFrozen(tx, booking.id);
        requireOpen(booking, "void");
        const answer = nothingDue(booking.answer);
        const delta = taxDelta(booking.answer, answer);
        const to = { state: "voided" as const, request: booking.request, answer };
        const change = {
          kind: "voided" as const,
          request: {},
          reason: body.reason,
          delta,
          by: principal,
          at: now(),
        };
        return { ...bookingReply(await changeBooking(tx, booking, to, change)), tax_delta: delta };
      }),
  });
}
