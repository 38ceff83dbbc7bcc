/** Spans and traces as tests need them. */
import type { Span, TraceHead } from "#traces/span.ts";

/** A span that succeeded, of kind `other`, without anything in it. */
export function madeSpan(changes: Partial<Span> & Pick<Span, "span_id" | "started_at">): Span {
  return {
    parent_span_id: null,
    kind: "other",
    name: "work",
    status: "succeeded",
    status_message: null,
    duration_ms: 10,
    model: null,
    provider: null,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    cost_usd: null,
    tool_name: null,
    input: null,
    output: null,
    truncated: [],
    attributes: {},
    events: [],
    links: [],
    ...changes,
  };
}

/** The head of a new trace of this project. */
export function madeHead(
  of: Pick<TraceHead, "organization_id" | "project_id">,
  changes: Partial<TraceHead> = {},
): TraceHead {
  return {
    id: crypto.randomUUID(),
    app_id: null,
    source: "otlp",
    source_id: null,
    session_id: null,
    user_id: null,
    ...of,
    ...changes,
  };
}
