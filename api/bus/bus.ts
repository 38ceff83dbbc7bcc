/**
 * The bus: what many gateways, apis and workers share and may lose. Two implementations behind
 * one interface, `memory_bus.ts` (one process) and `redis_bus.ts` (any number), and one contract
 * suite over both. Losing the bus loses nothing durable: Postgres holds the truth.
 */
import type { ReservedCall } from "#contracts/internal_calls.ts";

/** `unknown` also stands for "forgotten": the caller then asks the api. */
export type TakeResult = "taken" | "consumed" | "expired" | "unknown";

export interface Bus {
  /** Makes a reservation known until it expires. A put never revives one that was taken. */
  putReservation(reservation: ReservedCall): Promise<void>;
  /** Looks without taking. `consumed` stays distinguishable for `voiceLimits.tombstoneTtlS`. */
  peekReservation(callId: string): Promise<{ reservation: ReservedCall; consumed: boolean } | undefined>;
  /** Takes it, atomically: of any number of racing takers one gets `taken`, and gets it again when it asks again. */
  takeReservation(callId: string, taker: string): Promise<TakeResult>;
  /**
   * Gives back what this taker has taken, when the call could not be opened through no fault of the caller.
   * What it has not taken stays as it is.
   */
  restoreReservation(callId: string, taker: string): Promise<void>;

  /** Fire-and-forget fan-out to the live subscribers of `topic`. */
  publish(topic: string, payload: string): Promise<void>;
  /** Hears `topic` until the returned function is called. */
  subscribe(topic: string, listener: (payload: string) => void): Promise<() => Promise<void>>;

  /** Publishes this gateway's figures for `ttlMs`; a dead gateway's figures vanish by themselves. */
  reportCapacity(gatewayId: string, capacity: CapacityFigures, ttlMs: number): Promise<void>;
  capacities(): Promise<ReadonlyMap<string, CapacityFigures>>;

  /** Counts one hit in a fixed window; `allowed` is false above `limit`. */
  hitRateLimit(key: string, limit: number, windowMs: number): Promise<{ allowed: boolean; retryAfterMs: number }>;

  /** Whether it answers, for `/readyz`. */
  ping(): Promise<void>;
  /** What is known without asking, for figures. */
  link(): BusLink;
  close(): Promise<void>;
}

export interface BusLink {
  isUp: boolean;
  /** Times that it came back after having been away. */
  reconnects: number;
}

export interface CapacityFigures {
  slots: number;
  inUse: number;
  draining: boolean;
}

/** Topics, so that publishers and subscribers cannot drift apart. */
export const topics = {
  /** Payload: a credential's SHA-256, hex. Drops cached authorisations at once. */
  credentialRevoked: "credential_revoked",
  /** Payload: JSON `{call_id, message}`: a client message injected into a call (`POST …/control`). */
  callControl: (gatewayId: string) => `call_control:${gatewayId}`,
  /** Payload: JSON `SeatRequest` of `contracts/room_call.ts`: the agent is wanted in a room. */
  seatRequest: (gatewayId: string) => `seat_request:${gatewayId}`,
  /** Payload: JSON `SeatReply`, to the api process that asked. */
  seatReply: (askerId: string) => `seat_reply:${askerId}`,
  /** Payload: JSON `RoomNews`: a webhook told something of a room of this gateway. */
  roomNews: (gatewayId: string) => `room_news:${gatewayId}`,
} as const;
