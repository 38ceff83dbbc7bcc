/** Traces on the management API: of an app and of a project; listed, read with their spans, deleted. */
import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { pagedRoute } from "#identity/list_route.ts";
import { Span, Trace, traceStatuses } from "./span.ts";
import { countedMax, type Listed, type TraceFilter, type TraceSort } from "./span_store.ts";
import { type TraceRouteDeps, traceIdOf, traceIdParam, tracePlaces } from "./trace_place.ts";

const TraceWithSpans = named(
  "TraceWithSpans",
  Type.Composite([Trace, Type.Object({ spans: Type.Optional(Type.Array(Span)) })]),
  {
    spans: "with `include_spans`: its spans in the order in which they began, the first 10,000",
    tags: "words that its sender gave it",
    metadata: "what its sender keeps with it",
  } as never,
);
const OneTrace = dataOf(TraceWithSpans);
const DeletedTrace = dataOf(Trace);

const traceIdsMax = 1000;
const TraceIds = named(
  "TraceIds",
  Type.Object(
    {
      ids: Type.Array(Type.String({ format: "uuid" }), {
        minItems: 1,
        maxItems: traceIdsMax,
        uniqueItems: true,
        description: `1 to ${traceIdsMax} ids of traces`,
      }),
    },
    { additionalProperties: false },
  ),
);
const DeletedTraces = named("DeletedTraces", Type.Object({ message: Type.String(), deleted: Type.Integer() }), {
  message: "the same in words",
  deleted: "how many of them there were",
});

/** What lists of traces can be asked for. */
const filters = {
  status: { ...oneOf(traceStatuses), about: "what has become of them" },
  session_id: Type.String({ maxLength: 500, about: "traces of one session" }),
  user_id: Type.String({ maxLength: 500, about: "traces of one end user" }),
  model: Type.String({ maxLength: 500, about: "traces whose first request was to this model" }),
};
const sortColumns: readonly TraceSort[] = ["started_at", "ended_at", "status", "id"];
const newestFirst = [{ column: "started_at", descending: true }] as const;

/** Beyond what is counted, a list says that there are more. */
export function found<Row>({ rows, totalCount }: Listed<Row>) {
  return { rows, totalCount, isLowerBound: totalCount > countedMax };
}

export function traceRoutes(deps: TraceRouteDeps): Route[] {
  return [...tracePlaces.flatMap((place) => routesAt(deps, place)), ...deletionRoutes(deps)];
}

function routesAt(deps: TraceRouteDeps, { path, of, paramsFrom, find }: (typeof tracePlaces)[number]): Route[] {
  const { personalAccessToken: guard, traces } = deps;
  const common = { guard, errors: ["forbidden"] as const };
  const ofOne = {
    ...common,
    params: traceIdParam,
    // No route gives out a trace: programs and runs write them.
    paramsFrom,
  };
  const anyTrace = { params: { trace_id: "{{trace_id}}" } };
  return [
    pagedRoute(
      {
        ...common,
        path: `${path}/traces`,
        summary: `List the traces of ${of}, the newest first`,
        row: Trace,
        filters,
        times: ["started_at"],
        sort: sortColumns,
        order: newestFirst,
        paramsFrom,
        examples: {
          that_failed_since: { query: { status: "failed", "started_at:gte": "2026-11-01T00:00:00Z", page_size: 10 } },
          of_a_session: { query: { session_id: "web-4711", sort: "started_at" } },
        },
      },
      async ({ principal, params, query }, { page, sort, times }) => {
        const filter: TraceFilter = {
          ...(await find(deps, principal, params)),
          startedAt: times.started_at ?? [],
          ...(query.status !== undefined && { status: query.status }),
          ...(query.session_id !== undefined && { sessionId: query.session_id }),
          ...(query.user_id !== undefined && { userId: query.user_id }),
          ...(query.model !== undefined && { model: query.model }),
        };
        return found(await traces.listTraces(filter, page, sort as { column: TraceSort; descending: boolean }[]));
      },
    ),
    route({
      ...ofOne,
      method: "GET",
      path: `${path}/traces/{trace_id}`,
      summary: `Get a trace of ${of}`,
      query: {
        include_spans: Type.Optional(Type.Boolean({ description: "with its spans" })),
      },
      reply: { status: 200, body: OneTrace },
      examples: { with_its_spans: { ...anyTrace, query: { include_spans: true } } },
      handle: async ({ principal, params, query }) => {
        const trace = await findTrace(deps, await find(deps, principal, params), params.trace_id);
        if (!query.include_spans) return { data: trace };
        const { rows: spans } = await traces.readSpans(trace, { pageSize: countedMax, offset: 0 });
        return { data: { ...trace, spans } };
      },
    }),
    pagedRoute(
      {
        ...ofOne,
        path: `${path}/traces/{trace_id}/spans`,
        summary: `List the spans of a trace of ${of}, in the order in which they began`,
        row: Span,
        sort: [],
        examples: { a_page: { ...anyTrace, query: { page_size: 50 } } },
      },
      async ({ principal, params }, { page }) => {
        const trace = await findTrace(deps, await find(deps, principal, params), params.trace_id ?? "");
        return found(await traces.readSpans(trace, page));
      },
    ),
  ];
}

function deletionRoutes(deps: TraceRouteDeps): Route[] {
  const { personalAccessToken: guard, traces } = deps;
  const { path, paramsFrom, find } = tracePlaces[1];
  return [
    route({
      method: "DELETE",
      path: `${path}/traces/{trace_id}`,
      summary: "Delete a trace with its spans, for good",
      guard,
      params: traceIdParam,
      reply: { status: 200, body: DeletedTrace },
      errors: ["forbidden"],
      paramsFrom,
      examples: { a_trace: { params: { trace_id: "{{trace_id}}" } } },
      handle: async ({ principal, params }) => {
        const place = await find(deps, principal, params);
        const trace = await findTrace(deps, place, params.trace_id);
        await traces.deleteTraces(place, [trace.id]);
        return { data: trace };
      },
    }),
    route({
      method: "POST",
      path: `${path}/traces/bulk/delete`,
      summary: "Delete traces with their spans, for good; ids of none are passed over",
      guard,
      body: TraceIds,
      reply: { status: 200, body: DeletedTraces },
      errors: ["forbidden"],
      paramsFrom,
      examples: { of_one_person: { body: { ids: ["5b8efff7-9803-8103-d269-b633813fc60c"] } } },
      handle: async ({ principal, params, body }) => {
        const deleted = await traces.deleteTraces(await find(deps, principal, params), body.ids);
        return { message: `${deleted} of ${body.ids.length} traces deleted`, deleted };
      },
    }),
  ];
}

/** @throws ApiError not_found */
async function findTrace({ traces }: TraceRouteDeps, place: Pick<TraceFilter, "projectId" | "appId">, id: string) {
  const trace = await traces.readTrace(place, traceIdOf(id));
  if (!trace) throw new ApiError("not_found");
  return trace;
}
