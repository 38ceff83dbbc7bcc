/**
 * The spans of a call, made of its record: one for the call, one for each turn, for each request to a model and for
 * each tool. Pure: the same record makes the same spans, ids included.
 */
import type { CallEvent, CallRequest, CallTool, TranscriptItem, TurnMetrics } from "#contracts/call_record.ts";
import type { Usage } from "#contracts/voice_protocol.ts";
import { attributesOf, costIn, llmAttributes, ownSpan, toolAttributes } from "#traces/own_span.ts";
import type { Span, TraceSpans } from "#traces/span.ts";
import { spanIdOf } from "#traces/span_ids.ts";

/** A call that is over, as it was recorded. */
export interface RecordedCall {
  id: string;
  organization_id: string;
  project_id: string;
  agent_id: string | null;
  agent_name: string | null;
  transport: string;
  metadata: Record<string, unknown>;
  started_at: Date;
  duration_ms: number;
  end_reason: string;
  error_code: string | null;
  usage: Usage | null;
  transcript: TranscriptItem[];
  turns: TurnMetrics[];
  tools: CallTool[];
  requests: CallRequest[];
  events: CallEvent[];
}

const draftName = "draft";

export function callTrace(call: RecordedCall): TraceSpans {
  const turns = turnsOf(call);
  const root = rootSpan(call);
  const textOf = (field: "session_id" | "user_id") => {
    const value = call.metadata[field];
    return typeof value === "string" ? value : null;
  };
  const others = [
    ...turns.map((turn) => turnSpan(call, turn)),
    ...call.requests.map((request) => requestSpan(call, request, turns)),
    ...call.tools.map((tool) => toolSpan(call, tool, turns)),
  ];
  return {
    trace: {
      id: call.id,
      organization_id: call.organization_id,
      project_id: call.project_id,
      app_id: null,
      source: "call",
      source_id: call.id,
      session_id: textOf("session_id"),
      user_id: textOf("user_id"),
      metadata: call.metadata,
    },
    spans: [root, ...others.sort((a, b) => a.started_at.getTime() - b.started_at.getTime())],
  };
}

function rootSpan(call: RecordedCall): Span {
  const { usage, transcript } = call;
  const said = (role: TranscriptItem["role"]) => transcript.filter((item) => item.role === role);
  return ownSpan({
    span_id: rootIdOf(call),
    kind: "call",
    name: `invoke_agent ${call.agent_name ?? draftName}`,
    status: call.end_reason === "error" ? "failed" : "succeeded",
    status_message: call.error_code,
    started_at: call.started_at,
    duration_ms: call.duration_ms,
    prompt_tokens: usage?.llm.prompt ?? null,
    completion_tokens: usage?.llm.completion ?? null,
    cached_tokens: usage?.llm.cached ?? null,
    input: said("user")[0]?.text ?? null,
    output: said("agent").at(-1)?.heard_text ?? null,
    attributes: attributesOf({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": call.agent_id,
      "gen_ai.agent.name": call.agent_name,
      "gen_ai.conversation.id": call.id,
      "error.type": call.error_code,
      "frontdesk.call.id": call.id,
      "frontdesk.call.transport": call.transport,
      "frontdesk.call.end_reason": call.end_reason,
      "frontdesk.cost.known": usage?.cost?.known,
      "frontdesk.cost.currency": usage?.cost?.currency,
      "frontdesk.cost.unknown": usage?.cost?.unknown,
    }),
    events: call.events.map(({ type, at_ms, data }) => ({
      name: type,
      at: atMs(call, at_ms).toISOString(),
      attributes: data,
    })),
  });
}

/** What was said in a turn, and when it began and ended: milliseconds of the call. */
interface Turn {
  id: string;
  items: TranscriptItem[];
  metrics: TurnMetrics | undefined;
  startMs: number;
  endMs: number;
}

/** Whatever names a turn belongs to it, in the order in which they began. */
function turnsOf({ transcript, turns, requests }: RecordedCall): Turn[] {
  const ids = new Set([
    ...transcript.map(({ turn_id }) => turn_id),
    ...requests.flatMap(({ turn_id }) => (turn_id === undefined ? [] : [turn_id])),
  ]);
  return [...ids]
    .map((id) => {
      const items = transcript.filter(({ turn_id }) => turn_id === id);
      const asked = requests.filter(({ turn_id }) => turn_id === id);
      return {
        id,
        items,
        metrics: turns.find(({ turn_id }) => turn_id === id),
        startMs: Math.min(...items.map(({ start_ms }) => start_ms), ...asked.map(({ started_ms }) => started_ms)),
        endMs: Math.max(
          ...items.map(({ end_ms }) => end_ms),
          ...asked.map(({ started_ms, duration_ms }) => started_ms + duration_ms),
        ),
      };
    })
    .sort((a, b) => a.startMs - b.startMs);
}

function turnSpan(call: RecordedCall, { id, items, metrics, startMs, endMs }: Turn): Span {
  const said = (role: TranscriptItem["role"], field: "text" | "heard_text") =>
    items
      .filter((item) => item.role === role)
      .map((item) => item[field])
      .join(" ") || null;
  const { turn_id: _, vendors: __, cost: ___, ...figures } = metrics ?? { turn_id: id };
  return ownSpan({
    span_id: turnIdOf(call, id),
    parent_span_id: rootIdOf(call),
    kind: "turn",
    name: id,
    started_at: atMs(call, startMs),
    duration_ms: Math.max(0, endMs - startMs),
    input: said("user", "text"),
    output: said("agent", "heard_text"),
    attributes: Object.fromEntries(Object.entries(figures).map(([name, figure]) => [`frontdesk.turn.${name}`, figure])),
  });
}

const requestNames = { llm: "chat", stt: "transcribe", tts: "speak" } as const;

function requestSpan(call: RecordedCall, request: CallRequest, turns: readonly Turn[]): Span {
  const { stage, provider, model, prompt, completion, cached, audio_ms, characters, cost } = request;
  const turn = turns.find(({ id }) => id === request.turn_id);
  const currency = call.usage?.cost?.currency ?? "USD";
  const whose = { "gen_ai.provider.name": provider, "gen_ai.request.model": model };
  return ownSpan({
    span_id: spanIdOf("request", call.id, request.request_id),
    parent_span_id: turn ? turnIdOf(call, turn.id) : rootIdOf(call),
    kind: stage,
    name: `${requestNames[stage]} ${model ?? provider}`,
    started_at: atMs(call, request.started_ms),
    duration_ms: request.duration_ms,
    model: model ?? null,
    provider,
    prompt_tokens: prompt ?? null,
    completion_tokens: completion ?? null,
    cached_tokens: cached ?? null,
    ...costIn(currency, cost),
    attributes:
      stage === "llm"
        ? llmAttributes({
            provider,
            model,
            promptTokens: prompt,
            completionTokens: completion,
            cachedTokens: cached,
            firstTokenMs: request.first_ms ?? undefined,
            sessionId: call.id,
            cost,
            currency,
          })
        : attributesOf({
            ...whose,
            "frontdesk.audio_ms": audio_ms,
            "frontdesk.characters": characters,
            "frontdesk.cost": cost,
            ...(cost !== null && { "frontdesk.cost.currency": currency }),
          }),
  });
}

const toolStatuses = {
  running: "canceled",
  completed: "succeeded",
  failed: "failed",
  timeout: "failed",
  cancelled: "canceled",
} as const;

/** The record does not say whose turn a tool was called in: it is the newest one that had begun. */
function toolSpan(call: RecordedCall, tool: CallTool, turns: readonly Turn[]): Span {
  const turn = turns.filter(({ startMs }) => startMs <= tool.started_ms).at(-1);
  return ownSpan({
    span_id: spanIdOf("call tool", call.id, tool.tool_call_id),
    parent_span_id: turn ? turnIdOf(call, turn.id) : rootIdOf(call),
    kind: "tool",
    name: `execute_tool ${tool.name}`,
    tool_name: tool.name,
    status: toolStatuses[tool.state],
    status_message: tool.error,
    started_at: atMs(call, tool.started_ms),
    duration_ms: tool.duration_ms ?? Math.max(0, call.duration_ms - tool.started_ms),
    input: tool.arguments,
    output: tool.result,
    attributes: attributesOf({
      ...toolAttributes({ name: tool.name, callId: tool.tool_call_id }),
      "frontdesk.tool.source": tool.source,
      "frontdesk.run.id": tool.run_id,
    }),
  });
}

const rootIdOf = ({ id }: RecordedCall) => spanIdOf("call", id);
const turnIdOf = ({ id }: RecordedCall, turnId: string) => spanIdOf("turn", id, turnId);
const atMs = ({ started_at }: RecordedCall, ms: number) => new Date(started_at.getTime() + ms);
