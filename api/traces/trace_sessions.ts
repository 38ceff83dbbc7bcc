/**
 * Sessions of traces: what groups those that share a `session_id`; each has a row that is written with its first
 * trace. An app's sessions are in `runs/sessions.ts`, where runs that have no trace yet count too.
 */
import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import type { Route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import { pagedRoute } from "#identity/list_route.ts";
import { Trace } from "./span.ts";
import { type TraceRouteDeps, tracePlaces } from "./trace_place.ts";
import { found } from "./traces.ts";

const TraceSession = named(
  "TraceSession",
  Type.Object({
    id: Type.String({ description: "the session_id that its traces share" }),
    created_at: Timestamp,
    last_trace_at: Timestamp,
    trace_count: Type.Integer(),
    input: Type.Unsafe<unknown>({}),
  }),
  {
    last_trace_at: "when its latest trace began",
    trace_count: "traces that it has",
    input: "of its first trace",
  },
);

const sortColumns = ["created_at", "id"] as const;
type Sort = { column: (typeof sortColumns)[number]; descending: boolean }[];
type TraceSort = { column: "started_at"; descending: boolean }[];

export function traceSessionRoutes(deps: TraceRouteDeps): Route[] {
  const { personalAccessToken: guard, traces } = deps;
  const common = { guard, errors: ["forbidden"] as const };
  const project = tracePlaces[1];
  return [
    pagedRoute(
      {
        ...common,
        path: `${project.path}/sessions`,
        summary: "List the sessions of a project's traces, the newest first",
        row: TraceSession,
        times: ["created_at"],
        sort: sortColumns,
        paramsFrom: project.paramsFrom,
        examples: { of_november: { query: { "created_at:gte": "2026-11-01T00:00:00Z", page_size: 10 } } },
      },
      async ({ principal, params }, { page, sort, times }) => {
        const place = await project.find(deps, principal, params);
        const filter = { ...place, createdAt: times.created_at ?? [] };
        return found(await traces.listSessions(filter, page, sort as Sort));
      },
    ),
    ...tracePlaces.map(({ path, of, paramsFrom, find }) =>
      pagedRoute(
        {
          ...common,
          path: `${path}/sessions/{session_id}/traces`,
          summary: `List the traces of a session of ${of}, the first one first`,
          params: { session_id: Type.String({ maxLength: 500, description: "the session_id that they share" }) },
          row: Trace,
          times: ["started_at"],
          sort: ["started_at"],
          order: [{ column: "started_at", descending: false }],
          paramsFrom,
          examples: { a_session: { params: { session_id: "web-4711" }, query: { page_size: 10 } } },
        },
        async ({ principal, params }, { page, sort, times }) => {
          const { session_id: sessionId = "" } = params;
          const filter = { ...(await find(deps, principal, params)), sessionId, startedAt: times.started_at ?? [] };
          return found(await traces.listTraces(filter, page, sort as TraceSort));
        },
      ),
    ),
  ];
}
