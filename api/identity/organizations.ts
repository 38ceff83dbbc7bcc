/** The caller's own organization. */
import { type Static, Type } from "@sinclair/typebox";
import { type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import { oneRow } from "#store/sql.ts";
import type { ApiDeps } from "./api_deps.ts";

const Organization = Type.Object({
  id: Type.String({ format: "uuid" }),
  name: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
});

export function organizationRoutes({ sql, personalAccessToken }: ApiDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/organizations/me",
      summary: "Get the organization that the token acts in",
      guard: personalAccessToken,
      reply: { status: 200, body: Type.Object({ data: Organization }) },
      handle: async ({ principal }) => ({
        data: oneRow(
          await sql<Static<typeof Organization>[]>`
            select id, name, created_at, updated_at from organization where id = ${principal.organizationId}`,
        ),
      }),
    }),
  ];
}
