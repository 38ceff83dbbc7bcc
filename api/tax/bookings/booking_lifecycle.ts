/**
 * The states of a booking, and what may happen in each:
 *
 *     confirmed ── adjust ──► adjusted          any of the three ── refund of all ──► refunded
 *     confirmed, adjusted ── refund of a part ──► partially_refunded      … ── void ──► voided
 *
 * Refunded and voided are the end. A booking that was refunded in part stays so when it is adjusted.
 */
import { ApiError } from "#contracts/errors.ts";

export const bookingStates = ["confirmed", "adjusted", "partially_refunded", "refunded", "voided"] as const;
export type BookingState = (typeof bookingStates)[number];

/** What the words of a refusal name. */
type Action = "adjust" | "refund" | "void";

/** @throws ApiError conflict when the booking has ended */
export function requireOpen(booking: { state: BookingState }, action: Action): void {
  if (booking.state === "refunded" || booking.state === "voided") {
    throw new ApiError("conflict", {
      detail: `Cannot ${action} the booking: it is ${booking.state}, expected confirmed, adjusted or partially_refunded`,
    });
  }
}

export function stateAfterAdjusting(state: BookingState): BookingState {
  return state === "partially_refunded" ? state : "adjusted";
}
