/**
 * What is known of a reservation: from the bus, and from the api where the bus has forgotten it.
 * The api's answer is put on the bus again, so that the taking is atomic there.
 */
import type { Bus } from "#bus/bus.ts";
import type { CallState } from "#contracts/call_record.ts";
import type { ReservedCall } from "#contracts/internal_calls.ts";
import type { RefusalCode } from "#contracts/voice_protocol.ts";
import type { CallsApi } from "../api_client.ts";
import { matchesSha256 } from "./call_url.ts";

export interface KnownReservation {
  reservation: ReservedCall;
  consumed: boolean;
}

/** @throws when neither bus nor api can tell */
export async function findReservation(bus: Bus, api: CallsApi, callId: string): Promise<KnownReservation | undefined> {
  const known = await bus.peekReservation(callId);
  if (known) return known;
  const reservation = await api.getCall(callId);
  if (!reservation) return undefined;
  if (reservation.state === "reserved") await bus.putReservation(reservation);
  return { reservation, consumed: reservation.state === "in_progress" || reservation.state === "ended" };
}

/** Why this reservation cannot be connected to with `secret`, or undefined. Pure. */
export function refusalFor(
  known: KnownReservation | undefined,
  secret: string,
  nowMs: number,
): Extract<RefusalCode, "not_found" | "consumed" | "expired"> | undefined {
  // A wrong secret and an unknown id look alike, and so do their times.
  const sha256Hex = known?.reservation.secret_sha256 ?? "0".repeat(64);
  if (!matchesSha256(secret, sha256Hex) || !known) return "not_found";
  if (known.consumed) return "consumed";
  const { expires_at, state } = known.reservation;
  return state === "expired" || Date.parse(expires_at) <= nowMs ? "expired" : undefined;
}

/** The state that the preflight shows. Pure. */
export function preflightState(known: KnownReservation, isLiveHere: boolean, nowMs: number): CallState {
  if (isLiveHere) return "in_progress";
  const { state, expires_at } = known.reservation;
  if (state === "in_progress" || state === "ended" || state === "expired") return state;
  if (known.consumed) return "ended";
  return Date.parse(expires_at) <= nowMs ? "expired" : "reserved";
}
