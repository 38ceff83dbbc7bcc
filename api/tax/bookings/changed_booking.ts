/** What changes of a booking have in common: the reason they give and the booking they answer with. */

import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { BookingReply } from "./booking_record.ts";
import { TaxDelta } from "./tax_delta.ts";

export const Reason = Type.Union([Type.String({ maxLength: 1000 }), Type.Null()], {
  description: "text of at most 1000 characters",
});

/** A booking as a change left it, with what the change did to its taxes. */
export const ChangedBooking = named(
  "ChangedBooking",
  Type.Object({ ...BookingReply.properties, tax_delta: TaxDelta }),
  {
    tax_delta: "what changed in the taxes",
  },
);
