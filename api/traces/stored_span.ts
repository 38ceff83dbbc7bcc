/** A span as it goes into the store: within its bounds, and as text that Postgres can keep. */
import { billedKinds, type Span, type TraceHead, traceLimits } from "./span.ts";

const { valueBytesMax, nameCharactersMax, idCharactersMax } = traceLimits;

/** What Postgres can keep as text: neither U+0000 nor half a character. */
export function storableText(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).replaceAll("\0", "").toWellFormed();
}

const orNull = (text: string | null, charactersMax: number) =>
  text === null ? null : storableText(text, charactersMax);

/** No UTF-16 unit takes more than three bytes: most texts need no counting. */
const fits = (text: string, bytesMax: number) => text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax;

/**
 * `value` as JSON of at most `bytesMax` bytes. One that is longer becomes a text: its beginning.
 * @param cut is told so
 */
export function boundedJson(value: unknown, cut: () => void, bytesMax: number = valueBytesMax): string | null {
  if (value === null || value === undefined) return null;
  const text = JSON.stringify(value);
  if (fits(text, bytesMax)) return text;
  cut();
  const readable = typeof value === "string" ? value : text;
  // Escapes make JSON longer than its text: what is left after cutting fits for certain.
  for (let characters = bytesMax; ; characters = Math.floor(characters / 2)) {
    const beginning = JSON.stringify(readable.slice(0, characters).toWellFormed());
    if (Buffer.byteLength(beginning) <= bytesMax) return beginning;
  }
}

/** What clients know the shape of: where it is too long it is left out, never turned into text. */
function boundedObject(value: object, empty: string, cut?: () => void): string {
  const text = JSON.stringify(value);
  if (fits(text, valueBytesMax)) return text;
  cut?.();
  return empty;
}

/** One row of `span`, apart from what is its trace's. */
export function storedSpan({ project_id, id }: TraceHead, span: Span) {
  const truncated = new Set(span.truncated);
  const json = (field: "input" | "output") => boundedJson(span[field], () => truncated.add(field));
  const shaped = (field: "attributes" | "events" | "links", empty: string) =>
    boundedObject(span[field], empty, () => truncated.add(field));
  const input = json("input");
  const output = json("output");
  const attributes = shaped("attributes", "{}");
  const events = shaped("events", "[]");
  const links = shaped("links", "[]");
  return {
    project_id,
    trace_id: id,
    span_id: span.span_id,
    started_at: span.started_at,
    parent_span_id: span.parent_span_id,
    kind: span.kind,
    name: storableText(span.name, nameCharactersMax),
    status: span.status,
    status_message: orNull(span.status_message, 4000),
    duration_us: Math.round(span.duration_ms * 1000),
    model: orNull(span.model, nameCharactersMax),
    provider: orNull(span.provider, nameCharactersMax),
    prompt_tokens: span.prompt_tokens,
    completion_tokens: span.completion_tokens,
    cached_tokens: span.cached_tokens,
    cost_usd: span.cost_usd,
    tool_name: orNull(span.tool_name, nameCharactersMax),
    input,
    output,
    truncated: [...truncated],
    attributes,
    events,
    links,
    is_billed: (billedKinds as readonly string[]).includes(span.kind),
  };
}

/** One row of `trace`, apart from what its spans say. */
export function storedHead(head: TraceHead, rootSpanId: string | null) {
  return {
    project_id: head.project_id,
    id: head.id,
    organization_id: head.organization_id,
    app_id: head.app_id,
    source: head.source,
    source_id: orNull(head.source_id, idCharactersMax),
    root_span_id: rootSpanId,
    session_id: orNull(head.session_id, idCharactersMax),
    user_id: orNull(head.user_id, idCharactersMax),
    tags: (head.tags ?? []).map((tag) => storableText(tag, idCharactersMax)),
    metadata: boundedObject(head.metadata ?? {}, "{}"),
  };
}
