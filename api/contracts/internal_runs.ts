/**
 * The seam between gateway and api, run streams and requests that wait for a run.
 *
 * The gateway forwards every request of an app host to the api, with the internal secret in
 * `gatewayHeader`. Where the api's answer is a stream (a `POST /v1/runs` with `stream`, a
 * `GET /v1/runs/{run_id}/stream`, the same through the invocation proxy) it answers 200 with
 * `streamGrantType` as its content type and a `StreamGrant` as its body, and the gateway writes the
 * SSE stream. A request without that secret never sees a grant.
 *
 * Where the api's answer is due when a run ends or rests (a `POST /v1/runs` without flags, an invocation,
 * a cancel), it answers 200 with `waitGrantType` and a `WaitGrant`. The gateway waits, holding no connection
 * to the api, and asks for the answer with what the grant says of it. The headers of the grant's answer are
 * the answer's.
 *
 *     GET  /internal/runs/{run_id}/events?after=N&limit=M  -> 200 RunEventPage   (ascending, after N)
 *     POST /internal/runs/positions   RunPositionsRequest  -> 200 RunPositions   (for streams that hear nothing)
 *     POST /internal/runs/{run_id}/abandon                 -> 204                (on_disconnect: cancel)
 *     POST /internal/runs/{run_id}/answer  RunAnswerRequest -> the answer, or another grant
 *
 * Live events come over the bus: topic `runTopic(run_id)`, payload a `RunEventBatch`, published
 * only after their rows are committed. A missed batch is no loss: the next id tells, and the log is read.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "./one_of.ts";
import { runStatuses } from "./run_event.ts";

/** Request header by which the api knows its gateway; the front door strips it from clients. */
export const gatewayHeader = "x-frontdesk-gateway";
/** Where starting a run without a key answers the run's token, and where a request may show it. */
export const runTokenHeader = "run-token";
export const streamGrantType = "application/vnd.frontdesk.stream-grant+json";

/** One event, its JSON already serialized: the gateway frames it and does not parse it. */
export const LoggedEvent = Type.Object({ id: Type.Integer({ minimum: 1 }), type: Type.String(), json: Type.String() });
export type LoggedEvent = Static<typeof LoggedEvent>;

export const StreamGrant = Type.Object({
  run_id: Type.String({ format: "uuid" }),
  /** The stream begins after this event. */
  after: Type.Integer({ minimum: 0 }),
  /** Only these types are sent; empty means all. Ids stay as they are. */
  types: Type.Array(Type.String()),
  /** Events that are known already, the next ones after `after`: sent without another look into the log. */
  events: Type.Array(LoggedEvent),
  /** Cancel the run when this client goes away (`on_disconnect: cancel`). */
  cancel_on_disconnect: Type.Boolean(),
  /** Of a run that was started without a key: told in the stream's head. */
  run_token: Type.Optional(Type.String()),
});
export type StreamGrant = Static<typeof StreamGrant>;

export const waitGrantType = "application/vnd.frontdesk.wait-grant+json";

export const WaitGrant = Type.Object({
  run_id: Type.String({ format: "uuid" }),
  /** The wait begins after this event. */
  after: Type.Integer({ minimum: 0 }),
  /** What is waited for: the run's end, or also that it goes no further without an answer. */
  until: oneOf(["end", "rest"]),
  wait_ms: Type.Integer({ minimum: 0 }),
  /** Cancel the run when this client goes away (`on_disconnect: cancel`). Absent: it goes on. */
  cancel_on_disconnect: Type.Optional(Type.Boolean()),
  /** The api's own note of the answer that is due; the gateway gives it back as it is. */
  answer: Type.Unknown(),
});
export type WaitGrant = Static<typeof WaitGrant>;

export const RunAnswerRequest = Type.Object({
  answer: Type.Unknown(),
  /** The wait is over: an answer is due, whatever the run does. */
  is_late: Type.Boolean(),
});
export type RunAnswerRequest = Static<typeof RunAnswerRequest>;

export const RunEventPage = Type.Object({
  events: Type.Array(LoggedEvent),
  status: oneOf(runStatuses),
  last_event_id: Type.Integer({ minimum: 0 }),
});
export type RunEventPage = Static<typeof RunEventPage>;

export const RunPositionsRequest = Type.Object({
  run_ids: Type.Array(Type.String({ format: "uuid" }), { maxItems: 1000 }),
});
/** The newest event of each run that exists. */
export const RunPositions = Type.Object({
  positions: Type.Array(Type.Object({ run_id: Type.String(), last_event_id: Type.Integer({ minimum: 0 }) })),
});

export const RunEventBatch = Type.Object({
  events: Type.Array(LoggedEvent),
  /** When they were durable, by the worker's clock; for figures. */
  sent_at_ms: Type.Optional(Type.Number()),
});
export type RunEventBatch = Static<typeof RunEventBatch>;

export const runTopic = (runId: string) => `run_events:${runId}`;
