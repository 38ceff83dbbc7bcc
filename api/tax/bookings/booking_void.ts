/** `POST /v1/bookings/{id}/void`: the stay does not take place and nothing of its tax is due. */
import { Type } from "@sinclair/typebox";
import { type Route, route } from "#http/route.ts";
import { refuseWhenFrozen } from "../invoices/live_invoice.ts";
import { changeBooking, changing } from "./booking_change.ts";
import { requireOpen } from "./booking_lifecycle.ts";
import { BookingReply, bookingReply, fromCreation, lockBooking } from "./booking_record.ts";
import type { BookingDeps } from "./bookings.ts";
import { nothingDue, TaxDelta, taxDelta } from "./tax_delta.ts";

export const Reason = Type.Union([Type.String({ maxLength: 1000 }), Type.Null()], {
  description: "text of at most 1000 characters",
});

/** A booking as a change left it, with what the change did to its taxes. */
export const ChangedBooking = Type.Object({ ...BookingReply.properties, tax_delta: TaxDelta });

export function bookingVoidRoute({ sql, guard, record, now }: BookingDeps): Route {
  return route({
    method: "POST",
    path: "/v1/bookings/{booking_id}/void",
    summary: "Void a booking: all of its tax is given back",
    guard,
    record,
    body: Type.Object({ reason: Type.Optional(Reason) }),
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
