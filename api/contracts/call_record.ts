/**
 * What is kept of a call: timing, end reason, transcript with what was really heard, the latency
 * of each turn, tools, usage. The gateway reports it over the seam in `internal_calls.ts`.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { type CallFailureCode, callFailureCodes } from "./codes.ts";
import { named } from "./named_schema.ts";
import { oneOf } from "./one_of.ts";
import { VendorUse } from "./usage.ts";
import {
  type CloseReason,
  closeCodes,
  endReasons,
  type ServerMessageOf,
  serverMessageSchemas,
  toolSources,
  Usage,
} from "./voice_protocol.ts";

export const callStates = ["reserved", "in_progress", "ended", "expired"] as const;
export type CallState = (typeof callStates)[number];

/** One thing that was said. `text` is the whole; `heard_text` what was played before a barge-in. */
export const TranscriptItem = named(
  "TranscriptItem",
  Type.Object({
    item_id: Type.String(),
    turn_id: Type.String(),
    role: oneOf(["user", "agent"]),
    text: Type.String(),
    heard_text: Type.String(),
    interrupted: Type.Boolean(),
    heard_basis: Type.Optional(oneOf(["mark", "delivery", "clock"])),
    backchannel: Type.Optional(Type.Boolean()),
    /** Offset from the start of the call, milliseconds. */
    start_ms: Type.Number({ minimum: 0 }),
    end_ms: Type.Number({ minimum: 0 }),
  }),
  {
    item_id: "its id in the call",
    turn_id: "the turn that it belongs to",
    role: "who said it",
    text: "the whole",
    heard_text: "what was played of it before the caller broke in",
    interrupted: "whether the caller broke in",
    heard_basis:
      "how it is known what was heard, where the agent spoke: the client's marks, what its WebSocket stack took, or the clock alone",
    backchannel: "a listener's sound or word while the agent spoke: no turn, and not answered",
    start_ms: "from the start of the call",
    end_ms: "from the start of the call",
  },
);
export type TranscriptItem = Static<typeof TranscriptItem>;

export type TurnMetrics = Omit<ServerMessageOf<"turn_metrics">, "type">;
export const TurnMetrics = Type.Unsafe<TurnMetrics>(Type.Omit(serverMessageSchemas.turn_metrics, ["type", "seq", "t"]));

/** Something that went wrong, as its client was told. */
export const CallEvent = named(
  "CallEvent",
  Type.Object({
    event_id: Type.String(),
    at_ms: Type.Number({ minimum: 0 }),
    type: oneOf(["warning", "error"]),
    data: Type.Record(Type.String(), Type.Unknown()),
  }),
  {
    event_id: "its id in the call",
    at_ms: "from the start of the call",
    type: "which message the client was sent",
    data: "the message's own fields: `code`, `message`, `ref`",
  },
);
export type CallEvent = Static<typeof CallEvent>;

/** What of a tool call is kept: larger arguments are left out, a longer result is cut. */
export const keptArgumentsBytesMax = 4 * 1024;
export const keptResultBytesMax = 4 * 1024;

const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

/** A tool that the model called. */
export const CallTool = named(
  "CallTool",
  Type.Object({
    tool_call_id: Type.String(),
    name: Type.String(),
    source: oneOf(toolSources),
    state: oneOf(["running", "completed", "failed", "timeout", "cancelled"]),
    task_id: Type.Optional(Type.String()),
    run_id: Type.Optional(Type.String({ format: "uuid" })),
    arguments: orNull(Type.Record(Type.String(), Type.Unknown())),
    result: orNull(Type.String()),
    error: orNull(Type.String()),
    started_ms: Type.Number({ minimum: 0 }),
    duration_ms: orNull(Type.Number({ minimum: 0 })),
  }),
  {
    tool_call_id: "its id in the call, as in `tool_event`",
    name: "which tool",
    source: "what is behind the tool",
    state: "what became of it",
    task_id: "of one that went on by itself",
    run_id: "of an app: its run",
    arguments: `what the model gave it; null where that is more than ${keptArgumentsBytesMax / 1024} KiB`,
    result: `what it answered, up to ${keptResultBytesMax / 1024} KiB; null unless it is completed`,
    error: "what the model was told where it did not complete; null otherwise",
    started_ms: "from the start of the call",
    duration_ms: "how long it took; null while it runs",
  },
);
export type CallTool = Static<typeof CallTool>;

/** One request to a model, or the audio that a recognizer was sent after the last of them. */
export const CallRequest = named(
  "CallRequest",
  Type.Object({
    request_id: Type.String(),
    turn_id: Type.Optional(Type.String()),
    started_ms: Type.Number({ minimum: 0 }),
    first_ms: orNull(Type.Number({ minimum: 0 })),
    duration_ms: Type.Number({ minimum: 0 }),
    ...VendorUse.properties,
  }),
  {
    request_id: "its id in the call",
    turn_id: "the turn that it was for, where it was one's",
    started_ms: "from the start of the call",
    first_ms: "from its start to the first sign of an answer; null where there was none",
    duration_ms: "how long it took",
    requests: "1; 0 of what a recognizer heard after its last turn",
  },
);
export type CallRequest = Static<typeof CallRequest>;

/** Growth of a call's record since the last report; items, turns, events, tools and requests are upserted by their ids. */
export const CallProgress = Type.Object({
  call_id: Type.String({ format: "uuid" }),
  items: Type.Array(TranscriptItem),
  turns: Type.Array(TurnMetrics),
  events: Type.Optional(Type.Array(CallEvent)),
  tools: Type.Optional(Type.Array(CallTool)),
  requests: Type.Optional(Type.Array(CallRequest)),
  usage: Type.Optional(Usage),
});
export type CallProgress = Static<typeof CallProgress>;

export type CallFailure = CallFailureCode | CloseReason;
/** What failed in a call that ended by an error. */
export const CallFailure = oneOf(Object.keys({ ...callFailureCodes, ...closeCodes }) as CallFailure[]);
/** The same as a text, so that a gateway of another version, which may know more of them, is understood. */
const failureFromNeighbour = Type.Unsafe<CallFailure>({ type: "string" });

export const CallEnd = Type.Object({
  reason: oneOf(endReasons),
  duration_ms: Type.Number({ minimum: 0 }),
  /** Machine code of what failed, when `reason` is `error`. */
  error_code: Type.Optional(failureFromNeighbour),
});
export type CallEnd = Static<typeof CallEnd>;
