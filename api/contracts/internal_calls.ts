/**
 * The seam between gateway and api, calls: `/internal/calls/*`, open to `INTERNAL_SECRET` alone.
 *
 *     GET  /internal/calls/{call_id}            -> 200 ReservedCall | 404        (only when the bus does not know it)
 *     POST /internal/calls/{call_id}/open       OpenCallRequest -> 200 OpenedCall | 402 usage_limit | 404 | 409 consumed | 410 expired or agent archived
 *     POST /internal/calls/heartbeat            HeartbeatRequest -> 200 HeartbeatReply
 *     POST /internal/calls/{call_id}/close      CloseCallRequest -> 204 (idempotent: the first close wins)
 *     POST /internal/calls/{call_id}/runs       an app that is a tool: starts it, once for each call of the tool
 *     GET  /internal/calls/{call_id}/runs/{run_id}/events?after=N -> 200 RunEventPage, as soon as there is news
 *     POST /internal/calls/{call_id}/runs/{run_id}/cancel         -> 204
 *
 * `open` is one conditional update in Postgres: whatever a bus forgets, a reservation opens once.
 */
import { type Static, Type } from "@sinclair/typebox";
import { AudioFormat } from "./audio_format.ts";
import { CallEnd, CallProgress, callStates } from "./call_record.ts";
import { PriceTable } from "./usage.ts";
import type { CallConfig } from "./voice_agent.ts";

/** What admission needs to know of a reservation; this is also the bus's entry for it. */
export const ReservedCall = Type.Object({
  call_id: Type.String({ format: "uuid" }),
  /** SHA-256 of the URL's secret, hex. */
  secret_sha256: Type.String(),
  expires_at: Type.String({ format: "date-time" }),
  /** Origins that may connect; empty means any. */
  allowed_origins: Type.Array(Type.String()),
  state: Type.Unsafe<(typeof callStates)[number]>({ type: "string", enum: [...callStates] }),
});
export type ReservedCall = Static<typeof ReservedCall>;

export const OpenCallRequest = Type.Object({ gateway_id: Type.String({ minLength: 1, maxLength: 100 }) });

/** A connection, opened: for the process that calls its vendor, never for a log, a record or an answer to anybody else. */
export const Credential = Type.Object({
  /** The kind of connection. */
  provider: Type.String(),
  base_url: Type.Optional(Type.String()),
  secret: Type.String(),
});
/** By the connection's id. */
export const Credentials = Type.Record(Type.String(), Credential);
export type Credentials = Readonly<Static<typeof Credentials>>;

export const OpenedCall = Type.Object({
  call_id: Type.String(),
  /** Absent in a draft session, which has no agent behind it. */
  agent_id: Type.Optional(Type.String()),
  organization_id: Type.String(),
  /** Complete: defaults filled in, `variables` rendered, overrides merged. */
  config: Type.Unsafe<CallConfig>(Type.Object({}, { additionalProperties: true })),
  /** Of the connections that `config` names, as they are now. One that is gone is not among them. */
  credentials: Type.Optional(Credentials),
  /** Of what `config` names. */
  prices: Type.Optional(PriceTable),
  input_format: Type.Unsafe<AudioFormat>(AudioFormat),
  output_format: Type.Unsafe<AudioFormat>(AudioFormat),
  client_buffer_ms: Type.Integer(),
  initial_messages: Type.Array(
    Type.Object({
      role: Type.Unsafe<"user" | "agent">({ type: "string", enum: ["user", "agent"] }),
      text: Type.String(),
    }),
  ),
});
export type OpenedCall = Static<typeof OpenedCall>;

export const HeartbeatRequest = Type.Object({
  gateway_id: Type.String({ minLength: 1, maxLength: 100 }),
  calls: Type.Array(CallProgress, { maxItems: 1000 }),
});
export type HeartbeatRequest = Static<typeof HeartbeatRequest>;

/**
 * `closed`: calls that the api holds closed already (the sweeper was faster); the gateway ends them.
 * `over_limit`: calls that a ceiling of the day ends; they say goodbye.
 */
export const HeartbeatReply = Type.Object({
  closed: Type.Array(Type.String()),
  over_limit: Type.Optional(Type.Array(Type.String())),
});
export type HeartbeatReply = Static<typeof HeartbeatReply>;

export const CloseCallRequest = Type.Object({
  gateway_id: Type.String({ minLength: 1, maxLength: 100 }),
  end: CallEnd,
  progress: CallProgress,
});
export type CloseCallRequest = Static<typeof CloseCallRequest>;

/** Seconds between heartbeats, and the silence after which the sweeper closes a call as `error`. */
export const heartbeatIntervalS = 5;
export const heartbeatLostS = 15;
