/** The caller's own organization, as the platform has it: what it keeps, and for how long. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { oneRow, type Sql } from "#store/sql.ts";

const CallRetentionDays = Type.Integer({
  minimum: 1,
  maximum: 3650,
  description: "calls, what was said in them and their figures are deleted so many days after they were made",
});
const Organization = named(
  "Organization",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    call_retention_days: CallRetentionDays,
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  {
    name: "what it is called",
  },
);

const columns = (sql: Sql) => sql`id, name, call_retention_days, created_at, updated_at`;

export function organizationSettingsRoutes({ sql, now, personalAccessToken }: ApiDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/organizations/me",
      summary: "Get the organization that the token acts in",
      guard: personalAccessToken,
      reply: { status: 200, body: dataOf(Organization) },
      examples: {
        an_inn: {
          answer: {
            data: {
              id: "7c1d3a94-51e7-4c3b-8f0a-2b6d9e4f1a22",
              name: "The Inn at the Lake",
              call_retention_days: 400,
              created_at: "2026-11-21T09:00:00.000Z",
              updated_at: "2026-11-21T09:00:00.000Z",
            },
          },
        },
      },
      handle: async ({ principal }) => ({
        data: oneRow(
          await sql<Static<typeof Organization>[]>`
            select ${columns(sql)} from organization where id = ${principal.organizationId}`,
        ),
      }),
    }),
    route({
      method: "PATCH",
      path: "/v1/organizations/me",
      summary: "Change how long the organization keeps its calls; for administrators",
      guard: personalAccessToken,
      body: named("OrganizationChange", Type.Object({ call_retention_days: CallRetentionDays })),
      strictBody: true,
      reply: { status: 200, body: dataOf(Organization) },
      errors: ["forbidden"],
      examples: { for_three_months: { body: { call_retention_days: 90 } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        return {
          data: oneRow(
            await sql<Static<typeof Organization>[]>`
              update organization set call_retention_days = ${body.call_retention_days}, updated_at = ${now()}
              where id = ${principal.organizationId} returning ${columns(sql)}`,
          ),
        };
      },
    }),
  ];
}
