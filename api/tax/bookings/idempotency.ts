/** Requests that may be sent again: the key that names one, and what is answered the second time. */
import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { characters } from "#contracts/one_of.ts";

/** Longest key, in characters. */
const keyCharsMax = 200;
export const IdempotencyKey = Type.Union([characters(keyCharsMax), Type.Null()], {
  description: `text of at most ${keyCharsMax} characters: a request that is sent again with the same key takes effect once; an empty one is none`,
});

/** The answer to a request that had taken effect before. */
export function replayed(reply: unknown): Response {
  return Response.json(reply, { headers: { "idempotent-replayed": "true" } });
}

export function keyReused(field: "idempotency_key" | "refund_idempotency_key"): ApiError {
  return new ApiError("conflict", { detail: `${field} was used before, with a different body` });
}
