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
      examples: {
        an_inn: {
          answer: {
            data: {
              id: "7c1d3a94-51e7-4c3b-8f0a-2b6d9e4f1a22",
              name: "The Inn at the Lake",
              created_at: "2026-11-21T09:00:00.000Z",
              updated_at: "2026-11-21T09:00:00.000Z",
            },
          },
        },
      },
      handle: async ({ principal }) => ({
        data: oneRow(
          await sql<Static<typeof Organization>[]>`
            select id, name, created_at, updated_at from organization where id = ${principal.organizationId}`,
        ),
      }),
    }),
  ];
}
