/** Sessions of an app: what groups runs that share a `session_id`. There is no row of its own: the runs are it. */

import { Type } from "@sinclair/typebox";
import { type AppRouteDeps, findApp } from "#apps/apps.ts";
import { named } from "#contracts/named_schema.ts";
import type { Route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import { listRoute } from "#identity/list_route.ts";

const Session = named(
  "Session",
  Type.Object({
    id: Type.String({ description: "the session_id that its runs share" }),
    created_at: Timestamp,
    input: Type.Record(Type.String(), Type.Unknown(), { description: "of its first run" }),
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
      sort: ["created_at", "id"],
      errors: ["forbidden"],
      paramsFrom: { app_id: { route: "POST /v1/apps", field: "data.id" } },
      examples: { an_app: { query: { page_size: 10 } } },
      rows: async ({ principal, params: { app_id = "" } }) => {
        const app = await findApp(deps, principal, app_id);
        return {
          columns: sql`id, created_at, input`,
          from: sql`(
            select distinct on (session_id) session_id as id, created_at, input from run
            where app_id = ${app.id} and session_id is not null
            order by session_id, created_at, run.id) session`,
          where: sql`true`,
        };
      },
    }),
  ];
}
