/**
 * Sessions of an app: what groups runs and traces that share a `session_id`. The runs are the session, from the
 * first one's start; one that has traces alone has a row of its own.
 */

import { Type } from "@sinclair/typebox";
import { type AppRouteDeps, findApp } from "#apps/apps.ts";
import { named } from "#contracts/named_schema.ts";
import type { Route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import { listRoute } from "#identity/list_route.ts";

const Session = named(
  "Session",
  Type.Object({
    id: Type.String({ description: "the session_id that its runs and traces share" }),
    created_at: Timestamp,
    input: Type.Unsafe<unknown>({ description: "of its first run, or of its first trace where it has no runs" }),
  }),
);

export function sessionRoutes(deps: AppRouteDeps): Route[] {
  const { sql, personalAccessToken: guard } = deps;
  return [
    listRoute(sql, {
      path: "/v1/apps/{app_id}/sessions",
      summary: "List an app's sessions, the newest first",
      guard,
      row: Session,
      times: ["created_at"],
      sort: ["created_at", "id"],
      errors: ["forbidden"],
      paramsFrom: { app_id: { route: "POST /v1/apps", field: "data.id" } },
      examples: { an_app: { query: { page_size: 10 } } },
      rows: async ({ principal, params: { app_id = "" } }) => {
        const app = await findApp(deps, principal, app_id);
        return {
          columns: sql`id, created_at, input`,
          from: sql`(
            (select distinct on (session_id) session_id as id, created_at, input from run
             where app_id = ${app.id} and session_id is not null
             order by session_id, created_at, run.id)
            union all
            (select traced.id, traced.created_at, first.input
             from trace_session traced left join lateral (
               select input from trace
               where trace.project_id = traced.project_id and trace.session_id = traced.id and trace.app_id = traced.app_id
               order by trace.started_at, trace.id limit 1) first on true
             where traced.app_id = ${app.id}
               and not exists (select from run where run.app_id = traced.app_id and run.session_id = traced.id))) session`,
          where: sql`true`,
        };
      },
    }),
  ];
}
