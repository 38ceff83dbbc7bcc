/** The seam to the gateway, run streams: a run's log after a cursor, the end of an abandoned run; and answers that were waited for. */

import { Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { RunEventPage, RunPositions, RunPositionsRequest } from "#contracts/internal_runs.ts";
import { named } from "#contracts/named_schema.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";
import { abandonRun } from "./run_abandonment.ts";
import { readEvents } from "./run_reader.ts";
import { runAnswerRoute } from "./sync_answer.ts";

const eventsInPageMax = 1000;

export function internalRunRoutes(deps: { sql: Sql; bus: Bus; now(): Date; internal: Guard<undefined> }): Route[] {
  const { sql, now, internal: guard } = deps;
  return [
    runAnswerRoute({ sql, now, guard }),
    route({
      method: "GET",
      path: "/internal/runs/{run_id}/events",
      summary: "A run's events after one, ascending, as they are sent",
      guard,
      query: {
        after: Type.Integer({ minimum: 0 }),
        limit: Type.Integer({ minimum: 1, maximum: eventsInPageMax }),
      },
      reply: { status: 200, body: named("InternalRunEvents", RunEventPage) },
      handle: async ({ params, query }) => {
        const page = await readEvents(sql, params.run_id, query);
        if (!page) throw new ApiError("not_found");
        return page;
      },
    }),
    route({
      method: "POST",
      path: "/internal/runs/positions",
      summary: "The newest events of runs",
      guard,
      body: named("RunPositionsRequest", RunPositionsRequest),
      reply: { status: 200, body: named("RunPositions", RunPositions) },
      handle: async ({ body }) => ({
        positions: await sql<{ run_id: string; last_event_id: number }[]>`
          select id as run_id, last_event_id from run where id = any (${body.run_ids}::uuid[])`,
      }),
    }),
    route({
      method: "POST",
      path: "/internal/runs/{run_id}/abandon",
      summary: "The client that the run was for is gone (on_disconnect: cancel)",
      guard,
      reply: { status: 204 },
      handle: async ({ params }) => {
        await abandonRun(deps, params.run_id);
        return {};
      },
    }),
  ];
}
