/** A moment in a reply: a `Date` inside, RFC 3339 on the wire (`JSON.stringify` writes it so). */
import { Type } from "@sinclair/typebox";

export const Timestamp = Type.Unsafe<Date>({ type: "string", format: "date-time" });
export const OptionalTimestamp = Type.Unsafe<Date | null>({ type: ["string", "null"], format: "date-time" });

/** A field of a reply that may be null. */
export const nullableText = Type.Unsafe<string | null>({ type: ["string", "null"] });
