/**
 * Events of a run: stored and sent identically. `id` counts 1, 2, 3 … in each run, without a gap;
 * the first event is always `run.created`, the last one, and only the last one, is terminal.
 * Clients ignore types that they do not know.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { codeOf, runErrorCodes } from "./codes.ts";
import { named } from "./named_schema.ts";
import { oneOf } from "./one_of.ts";
import { Cost, costsTogether } from "./usage.ts";

export const runStatuses = ["pending", "running", "awaiting_input", "succeeded", "failed", "canceled"] as const;
export type RunStatus = (typeof runStatuses)[number];
export const terminalStatuses = ["succeeded", "failed", "canceled"] as const satisfies readonly RunStatus[];
export type TerminalStatus = (typeof terminalStatuses)[number];

export function isTerminal(status: RunStatus): status is TerminalStatus {
  return (terminalStatuses as readonly RunStatus[]).includes(status);
}

const uuid = () => Type.String({ format: "uuid" });
const dateTime = () => Type.String({ format: "date-time" });
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const anyObject = () => Type.Record(Type.String(), Type.Unknown());
const count = () => Type.Integer({ minimum: 0 });
const ms = () => Type.Number({ minimum: 0, description: "milliseconds" });

export const RunUsage = named(
  "RunUsage",
  Type.Object({
    prompt_tokens: count(),
    completion_tokens: count(),
    total_tokens: count(),
    cached_tokens: optional(count()),
    reasoning_tokens: optional(count()),
    cost: optional(Cost),
  }),
  {
    prompt_tokens: "tokens that models were given",
    completion_tokens: "tokens that they answered",
    total_tokens: "both together",
    cached_tokens: "of prompt_tokens, those that the vendor had kept",
    reasoning_tokens: "of completion_tokens, those that nobody sees",
    cost: "what vendors' models cost, by the price table",
  },
);
export type RunUsage = Static<typeof RunUsage>;

/** Adds to `sum` what was used. */
export function addUsage(sum: RunUsage, usage: RunUsage): void {
  sum.prompt_tokens += usage.prompt_tokens;
  sum.completion_tokens += usage.completion_tokens;
  sum.total_tokens += usage.total_tokens;
  if (usage.cached_tokens) sum.cached_tokens = (sum.cached_tokens ?? 0) + usage.cached_tokens;
  const cost = costsTogether(sum.cost, usage.cost);
  if (cost) sum.cost = cost;
}

/** Why a run or a node failed; `code` is stable, `message` is for people. */
export const RunError = named(
  "RunError",
  Type.Object({
    code: codeOf(runErrorCodes),
    message: Type.String(),
    node_id: optional(Type.String()),
  }),
  {
    code: "stable, for programs",
    message: "for people",
    node_id: "the node that failed",
  },
);
export type RunError = Static<typeof RunError>;

export const inputRequestTypes = ["approval_request", "feedback_request"] as const;
export const inputDecisions = ["approve", "reject", "respond"] as const;

/** Who is to answer: who holds a key, or also whoever started the run without one. */
export const inputAudiences = ["staff", "caller"] as const;
export type InputAudience = (typeof inputAudiences)[number];

export const InputRequest = named(
  "InputRequest",
  Type.Object({
    id: uuid(),
    type: oneOf(inputRequestTypes),
    prompt: Type.String(),
    params: anyObject(),
    editable_params: Type.Array(Type.String()),
    audience: optional(oneOf(inputAudiences)),
  }),
  {
    type: "an approval is approved or rejected; feedback is given",
    prompt: "what is asked",
    params: "what it is about",
    editable_params: "the params that an answer may change",
    audience: "who may answer: those who hold a key, or also the caller of a public app",
  },
);
export type InputRequest = Static<typeof InputRequest>;

const inputRequestData = {
  ...InputRequest.properties,
  node_id: Type.String(),
  expires_at: optional(dateTime()),
  allowed_decisions: Type.Array(oneOf(inputDecisions)),
  response_schema: optional(Type.Unknown()),
};

/** `data` of each event, by type. */
const eventData = {
  "run.created": Type.Object({
    id: uuid(),
    status: oneOf(runStatuses),
    input: anyObject(),
    app_id: uuid(),
    workflow_version_id: uuid(),
    session_id: optional(Type.String()),
    trace_id: uuid(),
  }),
  "run.started": Type.Object({ attempt: count(), worker: Type.String(), recovered: optional(Type.Literal(true)) }),
  "node.started": Type.Object({ type: Type.String(), name: optional(Type.String()), input: optional(Type.Unknown()) }),
  "node.progress": Type.Object({
    message: optional(Type.String()),
    percent: optional(Type.Number()),
    current: optional(Type.Number()),
    total: optional(Type.Number()),
  }),
  "content.delta": Type.Object({
    index: count(),
    text: optional(Type.String()),
    json_delta: optional(Type.String()),
    channel: oneOf(["output", "reasoning"]),
  }),
  "content.completed": Type.Object({ index: count(), text: Type.String() }),
  /** One request to a model, answered or failed; a node makes several where tools are called in between. */
  "model.completed": Type.Object({
    index: count(),
    provider: Type.String(),
    model: Type.String(),
    usage: RunUsage,
    /** Null where the price is not known, or the vendor told no tokens. */
    cost: Type.Unsafe<number | null>({ type: ["number", "null"], minimum: 0 }),
    currency: Type.String(),
    error: optional(Type.String()),
    first_token_ms: optional(ms()),
    duration_ms: ms(),
  }),
  "tool.called": Type.Object({ call_id: Type.String(), name: Type.String(), arguments: anyObject() }),
  "tool.completed": Type.Object({
    call_id: Type.String(),
    result: optional(Type.Unknown()),
    error: optional(Type.String()),
    duration_ms: ms(),
  }),
  "node.retrying": Type.Object({ error: RunError, next_attempt: count(), delay_ms: ms() }),
  "node.completed": Type.Object({
    output: optional(Type.Unknown()),
    usage: optional(RunUsage),
    duration_ms: ms(),
    /** The branch that was taken. */
    handle: optional(Type.String()),
  }),
  "node.skipped": Type.Object({ reason: Type.String() }),
  "node.failed": Type.Object({ error: RunError, handled: Type.Boolean() }),
  "input.requested": Type.Object(inputRequestData),
  "run.awaiting_input": Type.Object({ input_request_ids: Type.Array(uuid()) }),
  "input.resolved": Type.Object({
    input_request_id: uuid(),
    decision: oneOf([...inputDecisions, "expired", "canceled"]),
    changed_params: Type.Array(Type.String()),
    responded_by: optional(Type.String()),
    comment: optional(Type.String()),
  }),
  "run.resumed": Type.Object({}),
  "run.succeeded": Type.Object({ output: anyObject(), usage: RunUsage, duration_ms: ms() }),
  "run.failed": Type.Object({ error: RunError, usage: RunUsage, duration_ms: ms() }),
  "run.canceled": Type.Object({
    reason: optional(Type.String()),
    by: optional(Type.String()),
    usage: RunUsage,
    duration_ms: ms(),
  }),
} as const;

export type RunEventType = keyof typeof eventData;
export type RunEventData = { [K in RunEventType]: Static<(typeof eventData)[K]> };
export const runEventTypes = Object.keys(eventData) as RunEventType[];
export const runEventDataSchemas: Record<RunEventType, TSchema> = eventData;

const terminalEvents: Record<TerminalStatus, RunEventType> = {
  succeeded: "run.succeeded",
  failed: "run.failed",
  canceled: "run.canceled",
};
export function isTerminalEvent(type: string): boolean {
  return Object.values(terminalEvents).some((terminal) => terminal === type);
}

/** An event before it has its id and its time: what the engine records. */
export type NewRunEvent = {
  [K in RunEventType]: {
    type: K;
    data: RunEventData[K];
    node_id?: string;
    node_run_id?: string;
    /** The node that this one is inside of, and of which item, from 0, where that is a map. */
    parent_node_run_id?: string;
    iteration?: number;
    attempt?: number;
  };
}[RunEventType];

/** As stored and as sent. */
export type RunEvent = NewRunEvent & { id: number; run_id: string; created_at: string };

/** Bounds of the stream and of what runs may carry. */
export const runLimits = {
  /** Seconds between comments on an idle stream. */
  heartbeatS: 15,
  /** Longest life of one connection; the client comes back with its cursor. */
  connectionS: 15 * 60,
  /** A paused reader that drains nothing for this long is closed; it comes back with its cursor. */
  stalledReaderS: 30,
  syncWaitS: 60,
  inputBytesMax: 1024 * 1024,
  /** One event's JSON; a larger output or delta fails its node with `event_too_large`. */
  eventBytesMax: 256 * 1024,
  /** Nodes that a run may execute, each item of a map counted. */
  nodeRunsMax: 50_000,
  callbacksMax: 5,
  idempotencyKeyHours: 24,
  connectTokenHours: 24,
  runTokenHours: 24,
} as const;
