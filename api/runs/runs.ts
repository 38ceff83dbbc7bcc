/**
 * The Runs API of an app, on its own host: start a run and wait for it, leave it in the background or
 * stream it; read it, list its events, cancel it.
 */

import { type Static, Type } from "@sinclair/typebox";
import type { CalledApp, HostRouteDeps } from "#apps/hosted_app.ts";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { type StreamGrant, streamGrantType } from "#contracts/internal_runs.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { isTerminal, runEventTypes, runLimits, runStatuses } from "#contracts/run_event.ts";
import { dataOf, Pagination, pageOf, paginationFor, pagingQuery } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { listRoute } from "#identity/list_route.ts";
import { oneRow } from "#store/sql.ts";
import { callerOf, idempotencyKeyOf, requirePublicRights, tokenFor, tokenHeaders } from "./public_start.ts";
import { cancelRuns } from "./run_cancel.ts";
import { createRun, type NewRun } from "./run_creation.ts";
import { publishCanceled } from "./run_news.ts";
import { Run, readRun, runColumns } from "./run_reader.ts";
import { answerWhenDue } from "./sync_answer.ts";
import { type GatewayKnowledge, isFromGateway } from "./through_gateway.ts";

export interface RunRouteDeps extends HostRouteDeps, GatewayKnowledge {
  bus: Bus;
  /** How long a request without flags waits for its run, in milliseconds. */
  syncWaitMs: number;
}

/** Columns of text hold anything but U+0000. */
const text = { pattern: "^[^\\u0000]*$" };
export const name = (what: string) => Type.String({ minLength: 1, maxLength: 200, description: what, ...text });
const NewRunBody = named(
  "NewRun",
  Type.Object(
    {
      input: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      background: Type.Optional(Type.Boolean()),
      stream: Type.Optional(Type.Boolean()),
      session_id: Type.Optional(name("groups runs")),
      user_id: Type.Optional(name("the end user")),
      metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      on_disconnect: Type.Optional(oneOf(["continue", "cancel"])),
      timeout_s: Type.Optional(Type.Number({ minimum: 1, maximum: 30 * 86_400 })),
    },
    { additionalProperties: false },
  ),
  {
    input: "fields of the workflow's input",
    background: "true: answer at once, and run on",
    stream: "true: answer with the events as they come",
    session_id: "groups runs",
    user_id: "the end user, in your own words",
    metadata: "kept with the run",
    on_disconnect: "what becomes of the run when its caller leaves: it goes on (default), or is canceled",
    timeout_s: "seconds until it fails; the app's policy unless given",
  },
);
const OneRun = dataOf(Run);
const StartedRun = dataOf(
  named(
    "StartedRun",
    Type.Composite([
      Run,
      Type.Object({
        run_token: Type.Optional(
          Type.String({ description: "of a run that was started without a key: follows it for 24 hours" }),
        ),
      }),
    ]),
  ),
);
const bodyOptions = { bytesMax: runLimits.inputBytesMax + 64 * 1024 };
const sortColumns = ["created_at", "started_at", "ended_at", "status"] as const;
const eventTypes = Type.String({ maxLength: 1000, description: "event types, comma-separated" });
/** What a cancel waits for a holder that ends the run. */
const cancelWaitMs = 2000;

export function runRoutes(deps: RunRouteDeps): Route[] {
  const { sql, now, hostedApp } = deps;
  const path = "/v1/runs";
  const pathOfOne = "/v1/runs/{run_id}";
  return [
    route({
      method: "POST",
      path,
      waitsMs: deps.syncWaitMs,
      summary: "Start a run: waits for it, or background, or stream",
      guard: hostedApp.starts,
      body: NewRunBody,
      bodyOptions,
      reply: { status: 200, body: StartedRun },
      errors: ["usage_limit", "forbidden", "not_found", "conflict", "too_many_requests"],
      otherReplies: { 202: "Accepted: it runs in the background, or waits for somebody" },
      examples: { in_the_background: { body: { input: { guest: "Ms Rossi" }, background: true } } },
      handle: async ({ principal: app, body, request }) => {
        if (body.background && body.stream) {
          throw new ApiError("bad_request", { details: { stream: "Expected either background or stream" } });
        }
        const cancelOnDisconnect = body.on_disconnect === "cancel";
        if (body.background && cancelOnDisconnect) {
          const expected = "Expected continue: nobody stays connected to a run in the background";
          throw new ApiError("bad_request", { details: { on_disconnect: expected } });
        }
        if (body.stream) requireGateway(request, deps);
        requirePublicRights(app, body);
        const { id, created, firstEvent } = await createRun(deps, app, newRunOf(body, app, request));
        const token = tokenFor(deps, app, id);
        if (body.stream) {
          const events = firstEvent ? [{ id: 1, type: firstEvent.type, json: JSON.stringify(firstEvent) }] : [];
          const granted = { run_id: id, after: 0, types: [], events, cancel_on_disconnect: cancelOnDisconnect };
          return grant({ ...granted, ...token });
        }
        if (body.background) {
          const data = { ...(created ?? (await readRun(sql, app.id, id))), ...token };
          return Response.json({ data }, { status: 202, headers: tokenHeaders(token) });
        }
        const after = created?.last_event_id;
        const wait = {
          appId: app.id,
          runId: id,
          form: "run",
          waitMs: deps.syncWaitMs,
          after,
          cancelOnDisconnect,
        } as const;
        return answerWhenDue(deps, request, { ...wait, ...token });
      },
    }),
    listRoute(sql, {
      path,
      summary: "List runs, the newest first",
      guard: hostedApp.holdsKey,
      row: Run,
      filters: {
        status: { ...oneOf(runStatuses), about: "runs in this status" },
        session_id: Type.String({ maxLength: 200, ...text, about: "runs of one session" }),
        user_id: Type.String({ maxLength: 200, ...text, about: "runs of one end user" }),
      },
      times: ["created_at", "started_at"],
      sort: sortColumns,
      examples: { the_newest: { query: { sort: "-created_at", page_size: 10 } } },
      rows: ({ principal: app }) => ({ columns: runColumns(sql), from: sql`run`, where: sql`app_id = ${app.id}` }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get a run",
      guard: hostedApp.follows,
      reply: { status: 200, body: OneRun },
      paramsFrom: { run_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_run: {} },
      handle: async ({ principal: app, params }) => ({ data: await readRun(sql, app.id, params.run_id) }),
    }),
    route({
      method: "GET",
      path: "/v1/runs/{run_id}/stream",
      summary: "Attach to a run's event stream (SSE) after a cursor: Last-Event-ID or starting_after",
      guard: hostedApp.follows,
      query: {
        starting_after: Type.Optional(Type.String({ maxLength: 20, about: "number of the last event that was seen" })),
        types: Type.Optional(eventTypes),
        run_token: Type.Optional(
          Type.String({ maxLength: 200, description: "for an EventSource, which has no headers" }),
        ),
      },
      reply: {
        status: 200,
        body: named("EventStream", Type.String({ description: "server-sent events" })),
        mediaType: "text/event-stream",
      },
      paramsFrom: { run_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { after_what_was_seen: { query: { starting_after: "2" } } },
      handle: async ({ principal: app, params, query, request }) => {
        requireGateway(request, deps);
        const run = await readRun(sql, app.id, params.run_id);
        const cursor = request.headers.get("last-event-id") ?? query.starting_after;
        const after = cursorOf(cursor, run.last_event_id);
        // 204 keeps an EventSource from coming back for ever.
        if (cursor !== undefined && isTerminal(run.status) && after === run.last_event_id)
          return new Response(null, { status: 204 });
        return grant({ run_id: run.id, after, types: typesOf(query.types), events: [], cancel_on_disconnect: false });
      },
    }),
    route({
      method: "GET",
      path: "/v1/runs/{run_id}/events",
      summary: "List a run's events, ascending",
      guard: hostedApp.follows,
      query: {
        page: pagingQuery.page,
        page_size: pagingQuery.page_size,
        starting_after: Type.Optional(Type.Integer({ minimum: 0, about: "number of the last event that was seen" })),
        types: Type.Optional(eventTypes),
      },
      reply: {
        status: 200,
        body: named(
          "RunEventPage",
          Type.Object({
            data: Type.Array(Type.Unsafe<unknown>({ description: "run event" })),
            pagination: Pagination,
          }),
          {
            data: "events in their order",
          },
        ),
      },
      paramsFrom: { run_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { first_page: { query: { page_size: 50 } } },
      handle: async ({ principal: app, params, query }) => {
        const run = await readRun(sql, app.id, params.run_id);
        if ((query.starting_after ?? 0) > run.last_event_id) throw unknownEvent(run.last_event_id);
        const page = pageOf(query);
        const types = typesOf(query.types);
        const where = sql`
          run_id = ${run.id} and id > ${query.starting_after ?? 0}
          and ${types.length === 0 ? sql`true` : sql`type = any (${types}::text[])`}`;
        const { count } = oneRow(
          await sql<{ count: number }[]>`select count(*)::integer as count from run_event where ${where}`,
        );
        const rows = await sql<{ body: string }[]>`
          select body from run_event where ${where} order by id limit ${page.pageSize} offset ${page.offset}`;
        return { data: rows.map(({ body }) => JSON.parse(body) as unknown), pagination: paginationFor(page, count) };
      },
    }),
    route({
      method: "POST",
      path: "/v1/runs/{run_id}/cancel",
      waitsMs: cancelWaitMs,
      summary: "Cancel a run; once it is over, canceling changes nothing",
      guard: hostedApp.cancels,
      body: named(
        "RunCancel",
        Type.Object(
          { reason: Type.Optional(Type.String({ maxLength: 1000, ...text })) },
          { additionalProperties: false },
        ),
        {
          reason: "why, for the record",
        },
      ),
      reply: { status: 200, body: OneRun },
      paramsFrom: { run_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { no_longer_needed: { body: { reason: "The guest called instead" } } },
      handle: async ({ principal: app, params, body, request }) => {
        const { last_event_id: after } = await readRun(sql, app.id, params.run_id);
        const canceled = await sql.begin((transaction) =>
          cancelRuns(transaction, transaction`id = ${params.run_id} and app_id = ${app.id}`, body, now()),
        );
        publishCanceled(deps.bus, canceled);
        const waitMs = canceled.marked.length > 0 ? cancelWaitMs : 0;
        return answerWhenDue(deps, request, { appId: app.id, runId: params.run_id, form: "canceled", waitMs, after });
      },
    }),
  ];
}

function newRunOf(body: Static<typeof NewRunBody>, app: CalledApp, request: Request): NewRun {
  return {
    origin: "run",
    input: body.input ?? {},
    ...(body.session_id !== undefined && { sessionId: body.session_id }),
    ...(body.user_id !== undefined && { userId: body.user_id }),
    ...(body.metadata !== undefined && { metadata: body.metadata }),
    ...(body.timeout_s !== undefined && { timeoutS: body.timeout_s }),
    ...idempotencyKeyOf(request, app),
    ...callerOf(request),
  };
}

/** @throws ApiError bad_request where the request did not come through a gateway, which writes the streams */
function requireGateway(request: Request, deps: GatewayKnowledge): void {
  if (isFromGateway(request, deps)) return;
  throw new ApiError("bad_request", {
    details: { stream: "Expected a request through the gateway: it serves the streams" },
  });
}

function grant(stream: StreamGrant): Response {
  return new Response(JSON.stringify(stream), { headers: { "content-type": streamGrantType } });
}

/** @throws ApiError bad_request for an event that the run does not have */
function cursorOf(text: string | undefined, lastEventId: number): number {
  if (text === undefined || text === "") return 0;
  if (text === "latest") return lastEventId;
  const after = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(after <= lastEventId)) throw unknownEvent(lastEventId);
  return after;
}

function unknownEvent(lastEventId: number): ApiError {
  return new ApiError("bad_request", {
    details: { starting_after: `Expected an event id of this run: the last one is ${lastEventId}` },
  });
}

/** @throws ApiError bad_request for a type that does not exist */
function typesOf(text: string | undefined): string[] {
  const types = (text ?? "").split(",").filter((type) => type !== "");
  const unknown = types.find((type) => !(runEventTypes as readonly string[]).includes(type));
  if (unknown === undefined) return types;
  throw new ApiError("bad_request", { details: { types: `Expected event types: ${unknown} is none` } });
}
