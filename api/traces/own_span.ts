/** Spans of our own records, in OpenTelemetry's GenAI conventions (semantic-conventions 1.41). */
import { type Span, type TraceSpans, traceLimits } from "./span.ts";

type OwnSpan = Pick<Span, "span_id" | "kind" | "name" | "started_at" | "duration_ms"> & Partial<Span>;

/** What is not given is nothing; it succeeded unless it says otherwise. */
export function ownSpan(given: OwnSpan): Span {
  return {
    parent_span_id: null,
    status: "succeeded",
    status_message: null,
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
    ...given,
  };
}

/** Attributes without those that are not there. */
export function attributesOf(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
}

/** Sums are in dollars: a cost in another currency stands in the attributes alone. */
export function costIn(currency: string, cost: number | null): Pick<Span, "cost_usd"> {
  return { cost_usd: currency === "USD" ? cost : null };
}

/** A request to a language model. */
export function llmAttributes(of: {
  provider: string;
  model: string | undefined;
  promptTokens: number | undefined;
  completionTokens: number | undefined;
  cachedTokens: number | undefined;
  firstTokenMs?: number | undefined;
  sessionId: string | null;
  cost: number | null;
  currency: string;
}) {
  return attributesOf({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": of.provider,
    "gen_ai.request.model": of.model,
    "gen_ai.usage.input_tokens": of.promptTokens,
    "gen_ai.usage.output_tokens": of.completionTokens,
    "gen_ai.usage.cache_read.input_tokens": of.cachedTokens,
    "gen_ai.response.time_to_first_chunk": of.firstTokenMs === undefined ? undefined : of.firstTokenMs / 1000,
    "gen_ai.conversation.id": of.sessionId,
    ...(of.cost !== null && { "frontdesk.cost": of.cost, "frontdesk.cost.currency": of.currency }),
  });
}

/** A tool that was called. */
export function toolAttributes(of: { name: string; callId: string; type?: string }) {
  return attributesOf({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": of.name,
    "gen_ai.tool.call.id": of.callId,
    "gen_ai.tool.type": of.type ?? "function",
  });
}

/** Inputs and outputs of one trace together; what is over is left out, and named in `truncated`. */
const valuesBytesMax = 8 * 1024 * 1024;

/**
 * A trace of ours within its bounds: so many spans, and so much that they carry.
 * @returns it with how many spans were left out
 */
export function boundedTrace({ trace, spans }: TraceSpans): { trace: TraceSpans; dropped: number } {
  const kept = spans.slice(0, traceLimits.spansMax);
  let bytes = 0;
  const bounded = kept.map((span) => {
    const size = sizeOf(span.input) + sizeOf(span.output);
    if (bytes + size <= valuesBytesMax) {
      bytes += size;
      return span;
    }
    const cut = [...(span.input !== null ? ["input"] : []), ...(span.output !== null ? ["output"] : [])];
    return { ...span, input: null, output: null, truncated: [...span.truncated, ...cut] };
  });
  const dropped = spans.length - kept.length;
  const [root, ...others] = bounded;
  const marked =
    root && dropped > 0
      ? [{ ...root, attributes: { ...root.attributes, "frontdesk.dropped_spans": dropped } }, ...others]
      : bounded;
  return { trace: { trace, spans: marked }, dropped };
}

const sizeOf = (value: unknown) => (value === null ? 0 : (JSON.stringify(value)?.length ?? 0));
