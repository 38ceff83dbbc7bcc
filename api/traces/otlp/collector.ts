/**
 * The traces collector, on its own host (`collector.*`, `/-/collector/…`): OTLP over HTTP from whatever speaks
 * OpenTelemetry, with an access key. Answered when the spans are durable; sent again, they stand once.
 *
 *     body ─► decoding thread ─► whose project and app ─► in line for a commit ─► 200, with what was rejected
 */
import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { otlpLimits } from "#contracts/otlp.ts";
import { isUuid } from "#contracts/secrets.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { type Guard, mediaTypeOf, type Route, route } from "#http/route.ts";
import type { KeyHolder } from "#identity/authentication.ts";
import { costOf, priceOf } from "#providers/prices.ts";
import type { Sql } from "#store/sql.ts";
import type { Span, TraceHead, TraceSpans } from "../span.ts";
import { traceLimits } from "../span.ts";
import type { DecodingThread } from "./decoding_thread.ts";
import { exportAnswer, jsonType, protobufType } from "./export_answer.ts";
import type { MappedSpan } from "./semantics.ts";
import type { SpanIntake } from "./span_intake.ts";

export const projectHeader = "frontdesk-project-id";
const appAttribute = "frontdesk.app_id";

export interface CollectorDeps {
  sql: Sql;
  now(): Date;
  accessKey: Guard<KeyHolder>;
  thread: Pick<DecodingThread, "decode">;
  intake: Pick<SpanIntake, "add" | "requireRoom">;
  prices: PriceTable;
}

const anyList = (description: string) => Type.Array(Type.Record(Type.String(), Type.Unknown()), { description });
const ExportRequest = named(
  "ExportTraceServiceRequest",
  Type.Object({ resourceSpans: Type.Optional(anyList("spans by who made them, as OTLP's JSON has them")) }),
);
const ExportReply = named(
  "ExportTraceServiceResponse",
  Type.Object({
    partialSuccess: Type.Optional(
      Type.Object(
        { rejectedSpans: Type.String({ description: "how many" }), errorMessage: Type.String({ description: "why" }) },
        { description: "spans that are not kept; all others are. None, with a message, is a warning" },
      ),
    ),
  }),
);

const exampleSpan = {
  traceId: "5b8efff798038103d269b633813fc60c",
  spanId: "eee19b7ec3c1b174",
  name: "chat",
  startTimeUnixNano: "1795000000000000000",
  endTimeUnixNano: "1795000001000000000",
  attributes: [
    { key: "gen_ai.operation.name", value: { stringValue: "chat" } },
    { key: "gen_ai.usage.input_tokens", value: { intValue: "12" } },
  ],
};

export function collectorRoutes(deps: CollectorDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/traces",
      summary: "Take in spans: OTLP over HTTP, as JSON or as protobuf, plain or in gzip",
      guard: deps.accessKey,
      body: ExportRequest,
      upload: { bytesMax: otlpLimits.packedBytesMax, mediaTypes: [jsonType, protobufType] },
      reply: { status: 200, body: ExportReply },
      errors: ["too_many_requests", "not_found"],
      examples: {
        a_request_to_a_model: {
          body: { resourceSpans: [{ scopeSpans: [{ spans: [exampleSpan] }] }] },
          answer: {},
        },
      },
      handle: async ({ principal, request, bytes }) => takeIn(deps, principal, request, bytes),
    }),
  ];
}

async function takeIn(deps: CollectorDeps, holder: KeyHolder, request: Request, bytes: Uint8Array): Promise<Response> {
  const isProtobuf = isProtobufRequest(request);
  deps.intake.requireRoom(holder.organizationId);
  const { spans, rejected } = await deps.thread.decode({
    bytes,
    encoding: isProtobuf ? "protobuf" : "json",
    isGzip: isGzip(request),
    nowMs: deps.now().getTime(),
  });
  if (spans.length === 0) return exportAnswer(rejected, isProtobuf);
  const place = await placeOf(deps.sql, holder, request, spans);
  for (const { span } of spans) span.cost_usd ??= costFor(deps.prices, span);
  const { batch, tooMany } = tracesOf(spans, place);
  await deps.intake.add(holder.organizationId, batch);
  const reason = rejected.reason ?? (tooMany > 0 ? tooManySpans : place.warning);
  return exportAnswer({ count: rejected.count + tooMany, ...(reason !== undefined && { reason }) }, isProtobuf);
}

const tooManySpans = `Expected at most ${traceLimits.spansMax} spans of one trace`;

function isGzip(request: Request): boolean {
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "gzip") return true;
  if (encoding === "identity" || encoding === "") return false;
  throw new ApiError("unsupported_media_type", { details: { "Content-Encoding": "Expected gzip or none" } });
}

/** In US dollars, of a request to a model that does not tell its cost; null where the table has no price of it. */
function costFor({ currency, prices }: PriceTable, span: Span): number | null {
  const { kind, provider, model, prompt_tokens, completion_tokens, cached_tokens } = span;
  if (currency !== "USD" || kind !== "llm" || provider === null) return null;
  if (prompt_tokens === null || completion_tokens === null) return null;
  const by = { stage: "llm", provider, ...(model !== null && { model }) } as const;
  const used = { prompt: prompt_tokens, completion: completion_tokens, cached: cached_tokens ?? 0 };
  return costOf({ by, requests: 1, ...used }, priceOf(by, prices));
}

/** Whose the spans of a request are. */
interface Place {
  organizationId: string;
  projectId: string;
  /** Apps of the project that spans name. */
  appIds: ReadonlySet<string>;
  warning?: string;
}

/**
 * The key's project; for a key of an organization the one that the header names, else the one of the app that
 * spans name, else the only one. An app of another project is none: its traces are kept without one.
 * @throws ApiError bad_request where several are left, not_found for a project that is none of the organization's
 */
async function placeOf(
  sql: Sql,
  { organizationId, projectId: ofKey }: KeyHolder,
  request: Request,
  spans: readonly MappedSpan[],
): Promise<Place> {
  const named = [...new Set(spans.flatMap(({ appId }) => (appId === null ? [] : [appId])))];
  const appIds = named.filter(isUuid);
  const apps =
    appIds.length === 0
      ? []
      : await sql<{ id: string; project_id: string }[]>`
          select id, project_id from app where organization_id = ${organizationId} and id = any (${appIds}::uuid[])`;
  const projectId =
    ofKey ??
    (await askedProject(sql, organizationId, request)) ??
    apps[0]?.project_id ??
    (await only(sql, organizationId));
  const own = new Set(apps.filter(({ project_id }) => project_id === projectId).map(({ id }) => id));
  const unknown = named.find((id) => !own.has(id.toLowerCase()));
  return {
    organizationId,
    projectId,
    appIds: own,
    ...(unknown !== undefined && {
      warning: `${appAttribute} ${JSON.stringify(unknown.slice(0, 100))} is no app of the project: its traces are kept without an app`,
    }),
  };
}

async function askedProject(sql: Sql, organizationId: string, request: Request): Promise<string | undefined> {
  const asked = request.headers.get(projectHeader);
  if (asked === null) return undefined;
  const [project] = isUuid(asked)
    ? await sql<{ id: string }[]>`
        select id from project where id = ${asked} and organization_id = ${organizationId} and deleted_at is null`
    : [];
  if (!project) {
    throw new ApiError("not_found", { details: { "Frontdesk-Project-Id": "Expected a project of your organization" } });
  }
  return project.id;
}

/** @throws ApiError bad_request */
async function only(sql: Sql, organizationId: string): Promise<string> {
  const projects = await sql<{ id: string }[]>`
    select id from project where organization_id = ${organizationId} and deleted_at is null limit 2`;
  const [project] = projects;
  if (project && projects.length === 1) return project.id;
  const expected = "Expected the project's id: the access key is one of the whole organization";
  throw new ApiError("bad_request", { details: { "Frontdesk-Project-Id": expected } });
}

interface Grouped {
  batch: TraceSpans[];
  /** Spans beyond what a trace may have. */
  tooMany: number;
}

/** Spans by their trace. */
function tracesOf(spans: readonly MappedSpan[], place: Place): Grouped {
  const traces = new Map<string, { trace: TraceHead; spans: Span[] }>();
  let tooMany = 0;
  for (const mapped of spans) {
    const known = traces.get(mapped.traceId);
    const head = headOf(mapped, place);
    if (!known) traces.set(mapped.traceId, { trace: head, spans: [mapped.span] });
    else if (known.spans.length >= traceLimits.spansMax) tooMany += 1;
    else {
      known.spans.push(mapped.span);
      known.trace = together(known.trace, head);
    }
  }
  return { batch: [...traces.values()], tooMany };
}

function headOf({ traceId, appId, sessionId, userId, tags, metadata }: MappedSpan, place: Place): TraceHead {
  const ofProject = appId?.toLowerCase();
  return {
    id: uuidOf(traceId),
    organization_id: place.organizationId,
    project_id: place.projectId,
    app_id: ofProject !== undefined && place.appIds.has(ofProject) ? ofProject : null,
    source: "otlp",
    source_id: null,
    session_id: sessionId,
    user_id: userId,
    tags,
    metadata,
  };
}

/** What the first span that says anything says. */
function together(first: TraceHead, next: TraceHead): TraceHead {
  return {
    ...first,
    app_id: first.app_id ?? next.app_id,
    session_id: first.session_id ?? next.session_id,
    user_id: first.user_id ?? next.user_id,
    tags: isEmpty(next.tags) ? (first.tags ?? []) : tagsOf(first, next),
    metadata: isEmpty(next.metadata) ? (first.metadata ?? {}) : { ...next.metadata, ...first.metadata },
  };
}

const isEmpty = (value: object = {}) => Object.keys(value).length === 0;

const tagsMax = 50;

const tagsOf = (first: TraceHead, next: TraceHead) =>
  [...new Set([...(first.tags ?? []), ...(next.tags ?? [])])].slice(0, tagsMax);

/** A trace id's 32 hex digits as ids are shown. */
function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export function isProtobufRequest(request: Request): boolean {
  return mediaTypeOf(request) === protobufType;
}
