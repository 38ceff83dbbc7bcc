/** Spans and traces as tests need them. */
import { ownSpan } from "#traces/own_span.ts";
import type { Span, TraceHead } from "#traces/span.ts";

/** A span that succeeded, of kind `other`, without anything in it. */
export function madeSpan(changes: Partial<Span> & Pick<Span, "span_id" | "started_at">): Span {
  return ownSpan({ kind: "other", name: "work", duration_ms: 10, ...changes });
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
