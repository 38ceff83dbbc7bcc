/**
 * What a trace and a span are, as they are stored and as clients read them: OpenTelemetry's terms, with what
 * lists show (model, tokens, cost, tool) in fields of its own. What `attributes` say is in the GenAI conventions.
 */
import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";

export const traceStatuses = ["running", "succeeded", "failed", "canceled"] as const;
export type TraceStatus = (typeof traceStatuses)[number];

export const traceSources = ["run", "call", "otlp"] as const;
export type TraceSource = (typeof traceSources)[number];

/** Where the work of a span was done. */
export const spanKinds = [
  "run",
  "call",
  "node",
  "turn",
  "agent",
  "llm",
  "embedding",
  "tool",
  "retrieval",
  "stt",
  "tts",
  "http",
  "other",
] as const;
export type SpanKind = (typeof spanKinds)[number];

/** Kinds that are one request to a model: their tokens and cost are what a trace adds up. Others may repeat them as sums. */
export const billedKinds = ["llm", "embedding", "stt", "tts"] as const satisfies readonly SpanKind[];

export const spanStatuses = ["succeeded", "failed", "canceled"] as const;

/** Bounds of what is stored; what is longer is cut, and named in `truncated`. */
export const traceLimits = {
  /** Of a span's `input` and `output`, each, and of `attributes`, `events` and `links`, as JSON. */
  valueBytesMax: 64 * 1024,
  nameCharactersMax: 500,
  idCharactersMax: 500,
  spansMax: 10_000,
} as const;

const anyJson = Type.Unsafe<unknown>({});
const nullableCount = Type.Unsafe<number | null>({ type: ["integer", "null"], minimum: 0 });
const nullableCost = Type.Unsafe<number | null>({ type: ["number", "null"] });

export const Span = named(
  "Span",
  Type.Object({
    span_id: Type.String(),
    parent_span_id: nullableText,
    kind: oneOf(spanKinds),
    name: Type.String(),
    status: oneOf(spanStatuses),
    status_message: nullableText,
    started_at: Timestamp,
    duration_ms: Type.Number({ minimum: 0 }),
    model: nullableText,
    provider: nullableText,
    prompt_tokens: nullableCount,
    completion_tokens: nullableCount,
    cached_tokens: nullableCount,
    cost_usd: nullableCost,
    tool_name: nullableText,
    input: anyJson,
    output: anyJson,
    truncated: Type.Array(Type.String()),
    attributes: Type.Record(Type.String(), Type.Unknown()),
    events: Type.Array(
      Type.Object({
        name: Type.String({ description: "what happened" }),
        at: Type.String({ description: "when" }),
        attributes: anyJson,
      }),
    ),
    links: Type.Array(
      Type.Object({
        trace_id: Type.String(),
        span_id: Type.String({ description: "16 hex digits" }),
        attributes: anyJson,
      }),
    ),
  }),
  {
    span_id: "16 hex digits",
    parent_span_id: "the span that it is inside of",
    kind: "what sort of work it was",
    name: "what was done",
    status: "what has become of it",
    status_message: "why it failed",
    duration_ms: "milliseconds, exact to the microsecond",
    model: "the model that answered",
    provider: "whose model it is",
    prompt_tokens: "tokens that the model was given",
    completion_tokens: "tokens that it answered",
    cached_tokens: "of prompt_tokens, those that the provider had kept",
    cost_usd: "in US dollars; null where it is not known",
    tool_name: "the tool that was called",
    input: "what it was given",
    output: "what came out",
    truncated: "fields that were longer than what is kept of them",
    attributes: "as OpenTelemetry's conventions name them",
    events: "what happened within it",
    links: "spans of other traces that it has to do with",
  },
);
export type Span = Static<typeof Span>;

export const TraceUsage = named(
  "TraceUsage",
  Type.Object({
    prompt_tokens: Type.Integer({ minimum: 0 }),
    completion_tokens: Type.Integer({ minimum: 0 }),
    total_tokens: Type.Integer({ minimum: 0 }),
    cached_tokens: Type.Integer({ minimum: 0 }),
    cost_usd: nullableCost,
  }),
  {
    prompt_tokens: "tokens that models were given",
    completion_tokens: "tokens that they answered",
    total_tokens: "both together",
    cached_tokens: "of prompt_tokens, those that providers had kept",
    cost_usd: "in US dollars; null where no part of it is known",
  },
);

export const Trace = named(
  "Trace",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    source: oneOf(traceSources),
    source_id: nullableText,
    project_id: Type.String({ format: "uuid" }),
    app_id: nullableText,
    name: Type.String(),
    status: oneOf(traceStatuses),
    session_id: nullableText,
    user_id: nullableText,
    started_at: Timestamp,
    ended_at: OptionalTimestamp,
    duration_ms: Type.Unsafe<number | null>({ type: ["number", "null"] }),
    input: anyJson,
    output: anyJson,
    model: nullableText,
    provider: nullableText,
    usage: TraceUsage,
    span_count: Type.Integer(),
    error_count: Type.Integer(),
    tags: Type.Array(Type.String()),
    metadata: Type.Record(Type.String(), Type.Unknown()),
  }),
  {
    id: "the W3C trace id; in paths its 32 hex digits do as well",
    source: "what it is the record of",
    source_id: "the run's or the call's id",
    name: "as its first span is named",
    status: "`running` until its first span has come to its end",
    duration_ms: "milliseconds; null while it runs",
    input: "what it was given",
    output: "what came out",
    model: "the model of its first request to one",
    provider: "whose model it is",
    usage: "of all its requests to models",
    span_count: "spans that it has",
    error_count: "spans that failed",
    tags: "words that its sender gave it",
    metadata: "what its sender keeps with it",
  },
);
export type Trace = Static<typeof Trace>;

/** Whose a trace is: what its spans do not say. */
export interface TraceHead {
  id: string;
  organization_id: string;
  project_id: string;
  app_id: string | null;
  source: TraceSource;
  source_id: string | null;
  session_id: string | null;
  user_id: string | null;
  tags?: readonly string[];
  metadata?: Readonly<Record<string, unknown>>;
}

/** Spans of one trace. Name, status, input and output of the trace are those of the span without a parent. */
export interface TraceSpans {
  trace: TraceHead;
  spans: readonly Span[];
}
