/**
 * What is kept of a call: timing, end reason, transcript with what was really heard, the latency
 * of each turn, usage. The gateway reports it over the seam in `internal_calls.ts`.
 */

import { type Static, Type } from "@sinclair/typebox";
import { type CallFailureCode, callFailureCodes } from "./codes.ts";
import { named } from "./named_schema.ts";
import { oneOf } from "./one_of.ts";
import {
  type CloseReason,
  closeCodes,
  endReasons,
  type ServerMessageOf,
  serverMessageSchemas,
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

/** Growth of a call's record since the last report; items, turns and events are upserted by their ids. */
export const CallProgress = Type.Object({
  call_id: Type.String({ format: "uuid" }),
  items: Type.Array(TranscriptItem),
  turns: Type.Array(TurnMetrics),
  events: Type.Optional(Type.Array(CallEvent)),
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
