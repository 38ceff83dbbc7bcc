/**
 * What attributes mean: OpenTelemetry's GenAI conventions in their new names and their old ones, OpenInference,
 * Traceloop, Langfuse and the Vercel AI SDK, each as a field of ours. Of two names with two values the first in
 * the table wins. Pure. Original attributes stay, apart from those that became `input` or `output` as they are.
 */
import { otlpLimits } from "#contracts/otlp.ts";
import { billedKinds, type Span, type SpanKind, traceLimits } from "../span.ts";
import {
  type Attributes,
  type AttributeValue,
  noAttributes,
  type OtlpEvent,
  type OtlpSpan,
  type ReceivedSpan,
} from "./otlp_span.ts";

/** A span of ours, and what it says of its trace. */
export interface MappedSpan {
  /** 32 hex digits. */
  traceId: string;
  span: Span;
  /** `frontdesk.app_id`, as it was sent. */
  appId: string | null;
  sessionId: string | null;
  userId: string | null;
  tags: string[];
  metadata: Attributes;
}

/** Names of the same thing, the best first. */
const names = {
  session: [
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
  ],
  user: ["user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id"],
  provider: ["gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider"],
  model: [
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.response.model_name",
    "llm.model_name",
    "embedding.model_name",
    "ai.response.model",
    "ai.model.id",
  ],
  promptTokens: [
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
  ],
  completionTokens: [
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
  ],
  cachedTokens: [
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
  ],
  cost: ["gen_ai.usage.cost", "gen_ai.usage.total_cost", "llm.cost.total"],
  tool: ["gen_ai.tool.name", "tool.name", "ai.toolCall.name"],
  tags: ["tag.tags", "langfuse.trace.tags", "langfuse.tags"],
  /** A value as it is, or the beginning of flattened ones: `gen_ai.prompt.0.role`. */
  input: [
    "gen_ai.input.messages",
    "gen_ai.tool.call.arguments",
    "gen_ai.prompt",
    "llm.input_messages",
    "input.value",
    "ai.prompt.messages",
    "ai.prompt",
    "ai.toolCall.args",
    "langfuse.observation.input",
    "traceloop.entity.input",
  ],
  output: [
    "gen_ai.output.messages",
    "gen_ai.tool.call.result",
    "gen_ai.completion",
    "llm.output_messages",
    "output.value",
    "ai.response.text",
    "ai.response.object",
    "ai.response.toolCalls",
    "ai.toolCall.result",
    "langfuse.observation.output",
    "traceloop.entity.output",
  ],
} as const;

const operationKinds: Readonly<Record<string, SpanKind>> = {
  chat: "llm",
  text_completion: "llm",
  generate_content: "llm",
  embeddings: "embedding",
  execute_tool: "tool",
  retrieval: "retrieval",
  invoke_agent: "agent",
  create_agent: "agent",
  invoke_workflow: "agent",
};
const openInferenceKinds: Readonly<Record<string, SpanKind>> = {
  LLM: "llm",
  EMBEDDING: "embedding",
  TOOL: "tool",
  RETRIEVER: "retrieval",
  RERANKER: "retrieval",
  AGENT: "agent",
  CHAIN: "node",
};
const traceloopKinds: Readonly<Record<string, SpanKind>> = {
  workflow: "node",
  task: "node",
  agent: "agent",
  tool: "tool",
};
const langfuseKinds: Readonly<Record<string, SpanKind>> = {
  generation: "llm",
  embedding: "embedding",
  tool: "tool",
  retriever: "retrieval",
  agent: "agent",
  chain: "node",
};

/** Ids and times are the caller's to check. */
export function mapSpan({ of: { resource, scope }, span: sent }: ReceivedSpan): MappedSpan {
  const { attributes } = sent;
  const kind = kindOf(attributes);
  const isBilled = (billedKinds as readonly SpanKind[]).includes(kind);
  const input = valueAt(attributes, names.input) ?? messagesOf(sent.events, "input");
  const output = valueAt(attributes, names.output) ?? messagesOf(sent.events, "output");
  const kept = keptAttributes({ attributes, resource, scope, taken: [input?.name, output?.name] });
  const truncated = sent.dropped > 0 || kept.isCut ? ["attributes"] : [];
  const failed = sent.statusCode === 2;
  return {
    traceId: sent.traceId,
    appId: textOf(attributes["frontdesk.app_id"]) ?? textOf(resource["frontdesk.app_id"]),
    sessionId: firstText(attributes, names.session) ?? textOf(resource["session.id"]),
    userId: firstText(attributes, names.user),
    tags: tagsOf(attributes),
    metadata: metadataOf(attributes),
    span: {
      span_id: sent.spanId,
      parent_span_id: sent.parentSpanId === "" ? null : sent.parentSpanId,
      kind,
      name: sent.name,
      status: failed ? "failed" : "succeeded",
      status_message: failed ? sent.statusMessage || exceptionOf(sent.events) : sent.statusMessage || null,
      started_at: new Date(Math.floor(sent.startedUs / 1000)),
      duration_ms: Math.max(0, sent.endedUs - sent.startedUs) / 1000,
      model: firstText(attributes, names.model),
      provider: firstText(attributes, names.provider),
      // Of others they repeat what the requests below them say.
      prompt_tokens: isBilled ? firstCount(attributes, names.promptTokens) : null,
      completion_tokens: isBilled ? firstCount(attributes, names.completionTokens) : null,
      cached_tokens: isBilled ? firstCount(attributes, names.cachedTokens) : null,
      cost_usd: isBilled ? firstAmount(attributes, names.cost) : null,
      tool_name: firstText(attributes, names.tool),
      input: input?.value ?? null,
      output: output?.value ?? null,
      truncated,
      attributes: kept.attributes,
      events: sent.events.map(({ name, atUs, attributes }) => ({
        name,
        at: new Date(Math.floor(atUs / 1000)).toISOString(),
        attributes: cutAttributes(attributes).attributes,
      })),
      links: sent.links.map((link) => ({
        trace_id: link.traceId,
        span_id: link.spanId,
        attributes: cutAttributes(link.attributes).attributes,
      })),
    },
  };
}

function kindOf(attributes: Attributes): SpanKind {
  const named =
    operationKinds[textOf(attributes["gen_ai.operation.name"]) ?? ""] ??
    openInferenceKinds[textOf(attributes["openinference.span.kind"])?.toUpperCase() ?? ""] ??
    traceloopKinds[textOf(attributes["traceloop.span.kind"]) ?? ""] ??
    langfuseKinds[textOf(attributes["langfuse.observation.type"]) ?? ""] ??
    vercelKind(textOf(attributes["ai.operationId"]));
  if (named) return named;
  if (firstText(attributes, ["gen_ai.request.model", "gen_ai.response.model", "llm.request.type"])) return "llm";
  return attributes["http.request.method"] !== undefined || attributes["http.method"] !== undefined ? "http" : "other";
}

/** `ai.generateText` repeats the sums of the `ai.generateText.doGenerate` inside of it, which are the requests. */
function vercelKind(operation: string | null): SpanKind | undefined {
  if (operation === null) return undefined;
  if (operation.endsWith(".doEmbed")) return "embedding";
  if (/\.do(Generate|Stream)$/.test(operation)) return "llm";
  return operation === "ai.toolCall" ? "tool" : "agent";
}

/** Text that is not blank. Numbers count as text where ids are asked for. */
function textOf(value: AttributeValue | undefined): string | null {
  if (typeof value === "string") return value === "" ? null : value;
  return typeof value === "number" ? String(value) : null;
}

function firstText(attributes: Attributes, among: readonly string[]): string | null {
  for (const name of among) {
    const text = textOf(attributes[name]);
    if (text !== null) return text;
  }
  return null;
}

function firstAmount(attributes: Attributes, among: readonly string[]): number | null {
  for (const name of among) {
    const number = Number(textOf(attributes[name]) ?? Number.NaN);
    if (Number.isFinite(number) && number >= 0) return number;
  }
  return null;
}

function firstCount(attributes: Attributes, among: readonly string[]): number | null {
  const amount = firstAmount(attributes, among);
  return amount === null || amount > Number.MAX_SAFE_INTEGER ? null : Math.round(amount);
}

interface TakenValue {
  value: unknown;
  /** The attribute that it is, whole. */
  name?: string;
}

function valueAt(attributes: Attributes, among: readonly string[]): TakenValue | undefined {
  for (const name of among) {
    const value = attributes[name];
    if (value !== undefined && value !== null && value !== "") return { value: unpacked(value), name };
    const list = flattenedNames.has(name) ? unflattened(attributes, `${name}.`) : undefined;
    if (list) return { value: list };
  }
  return undefined;
}

const levelsMax = 64;

/** Messages and arguments travel as the text of JSON. Other text stays what it is. */
function unpacked(value: AttributeValue): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  // Text that comes to Postgres inside of JSON would be refused for these; as text it can stay.
  if (/\\u(0000|d[89a-f])/i.test(value)) return value;
  try {
    const parsed: unknown = JSON.parse(value);
    return isShallow(parsed, levelsMax) ? parsed : value;
  } catch {
    return value;
  }
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((one) => isShallow(one, levels - 1));
}

/** What comes as one attribute a field as well. */
const flattenedNames: ReadonlySet<string> = new Set([
  "gen_ai.prompt",
  "gen_ai.completion",
  "llm.input_messages",
  "llm.output_messages",
]);
const flattenedMax = 1000;

/** `gen_ai.prompt.0.role` and its like as a list of objects; undefined where there are none. */
function unflattened(attributes: Attributes, prefix: string): unknown[] | undefined {
  const items: Attributes[] = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (!name.startsWith(prefix)) continue;
    const [, index = "", field] = /^(\d{1,4})\.(.+)$/.exec(name.slice(prefix.length)) ?? [];
    if (field === undefined || Number(index) >= flattenedMax) continue;
    const item = items[Number(index)] ?? noAttributes();
    items[Number(index)] = item;
    // OpenInference has `message.` before each field.
    item[field.replace(/^message\./, "")] = value;
  }
  const present = items.filter((item) => item !== undefined);
  return present.length > 0 ? present : undefined;
}

const inputEvents = /^gen_ai\.(system|user|assistant|tool)\.message$/;

/** Messages that stand in events: one an event, as until GenAI 1.36, or all in one. */
function messagesOf(events: readonly OtlpEvent[], which: "input" | "output"): TakenValue | undefined {
  const messages: unknown[] = [];
  for (const { name, attributes } of events) {
    const whole =
      attributes[`gen_ai.${which}.messages`] ?? attributes[which === "input" ? "gen_ai.prompt" : "gen_ai.completion"];
    if (whole !== undefined) return { value: unpacked(whole) };
    const isOfThese = which === "input" ? inputEvents.test(name) : name === "gen_ai.choice";
    if (isOfThese) messages.push(attributes["gen_ai.event.content"] ?? withRole(name, attributes));
  }
  return messages.length > 0 ? { value: messages } : undefined;
}

const withRole = (name: string, attributes: Attributes) => ({
  role: inputEvents.exec(name)?.[1] ?? "assistant",
  ...attributes,
});

function exceptionOf(events: readonly OtlpEvent[]): string | null {
  const exception = events.findLast(({ name }) => name === "exception");
  return exception ? firstText(exception.attributes, ["exception.message", "exception.type"]) : null;
}

function tagsOf(attributes: Attributes): string[] {
  for (const name of names.tags) {
    const value = attributes[name];
    const list = typeof value === "string" ? unpacked(value) : value;
    if (Array.isArray(list)) return list.flatMap((one) => (typeof one === "string" && one !== "" ? [one] : []));
    if (typeof list === "string" && list !== "") return [list];
  }
  return [];
}

const metadataPrefixes = ["langfuse.trace.metadata.", "traceloop.association.properties.", "ai.telemetry.metadata."];

function metadataOf(attributes: Attributes): Attributes {
  const whole = typeof attributes.metadata === "string" ? unpacked(attributes.metadata) : attributes.metadata;
  const isObject = typeof whole === "object" && whole !== null && !Array.isArray(whole);
  const metadata = { ...(isObject && (whole as Attributes)) };
  for (const [name, value] of Object.entries(attributes)) {
    const prefix = metadataPrefixes.find((one) => name.startsWith(one));
    if (prefix) metadata[name.slice(prefix.length)] = value;
  }
  return metadata;
}

interface Kept {
  attributes: Attributes;
  isCut: boolean;
}

/** The span's own, and below them who sent it. */
function keptAttributes(from: {
  attributes: Attributes;
  resource: Attributes;
  scope: string;
  taken: readonly (string | undefined)[];
}): Kept {
  const all: Attributes = noAttributes();
  for (const [name, value] of Object.entries(from.attributes)) {
    if (!from.taken.includes(name)) all[name] = value;
  }
  if (from.scope !== "") all["otel.scope.name"] ??= from.scope;
  for (const [name, value] of Object.entries(from.resource)) all[name] ??= value;
  return cutAttributes(all);
}

/** Room for names, quotes and escapes is left below the bound of the whole. */
const wholeBytesMax = traceLimits.valueBytesMax / 2;

/** Attributes within their bounds: a long text is cut, and what no longer fits together is left out. */
function cutAttributes(attributes: Attributes): Kept {
  const kept: Attributes = noAttributes();
  let isCut = false;
  let bytes = 0;
  for (const [name, value] of Object.entries(attributes)) {
    const size = name.length + sizeOf(value);
    if (size <= otlpLimits.attributeBytesMax && bytes + size <= wholeBytesMax) {
      kept[name] = value;
      bytes += size;
      continue;
    }
    isCut = true;
    const room = Math.min(otlpLimits.attributeBytesMax, wholeBytesMax - bytes) - name.length;
    if (typeof value !== "string" || room <= 0) continue;
    kept[name] = value.slice(0, room).replace(/\p{Surrogate}$/u, "");
    bytes += name.length + room;
  }
  return { attributes: kept, isCut };
}

function sizeOf(value: AttributeValue): number {
  if (typeof value === "string") return value.length;
  return typeof value === "object" && value !== null ? JSON.stringify(value).length : 8;
}

/** Whether a request can be about this span at all. */
export function hasIds({ traceId, spanId }: Pick<OtlpSpan, "traceId" | "spanId">): boolean {
  return isHexId(traceId, 32) && isHexId(spanId, 16);
}

/** Hex digits, not all of them zero (W3C Trace Context, section 3.2.2.3). */
export function isHexId(text: string, digits: number): boolean {
  return text.length === digits && /^[0-9a-f]+$/.test(text) && !/^0+$/.test(text);
}
