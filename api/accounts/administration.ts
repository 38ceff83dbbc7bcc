/** What platform administrators do: see all organizations, and open or close API access for one. */

import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import type { AccessTokens } from "#identity/access_tokens.ts";
import { oneRow, type Sql } from "#store/sql.ts";
import {
  OrganizationReply,
  type OrganizationRow,
  organizationColumns,
  organizationReply,
} from "./organization_record.ts";

export function administrationRoutes({
  sql,
  now,
  accessTokens,
}: {
  sql: Sql;
  now(): Date;
  accessTokens: Pick<AccessTokens, "platformAdministrator">;
}): Route[] {
  const path = "/v1/admin/organizations";
  return [
    route({
      method: "GET",
      path,
      summary: "List all organizations, newest first; X-Total-Count says how many there are",
      guard: accessTokens.platformAdministrator,
      query: {
        q: Type.Optional(Type.String({ maxLength: 200, description: "a part of the name" })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "default 50" })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, about: "how many are passed over" })),
      },
      reply: { status: 200, body: named("Organizations", Type.Array(OrganizationReply)) },
      errors: ["forbidden"],
      examples: { by_name: { query: { q: "inn", limit: 10 } } },
      handle: async ({ query }) => {
        const named = query.q ? sql`position(lower(${query.q}) in lower(name)) > 0` : sql`true`;
        const [rows, counts] = await Promise.all([
          sql<OrganizationRow[]>`
            select ${organizationColumns(sql)} from organization where ${named}
            order by created_at desc, id limit ${query.limit ?? 50} offset ${query.offset ?? 0}`,
          sql<{ count: number }[]>`select count(*)::integer as count from organization where ${named}`,
        ]);
        const headers = { "x-total-count": String(oneRow(counts).count) };
        return Response.json(rows.map(organizationReply), { headers });
      },
    }),
    route({
      method: "PATCH",
      path: "/v1/admin/organizations/{organization_id}",
      summary: "Open or close API access for an organization; keys that exist go on working",
      guard: accessTokens.platformAdministrator,
      body: named("ApiAccess", Type.Object({ api_access_enabled: Type.Boolean() }), {
        api_access_enabled: "whether owners of the organization may make API keys",
      }),
      reply: { status: 200, body: OrganizationReply },
      errors: ["forbidden"],
      paramsFrom: { organization_id: { route: `GET ${path}`, field: "0.id" } },
      examples: { open_api_access: { body: { api_access_enabled: true } } },
      handle: async ({ params, body }) => {
        const [row] = await sql<OrganizationRow[]>`
          update organization set api_access_enabled = ${body.api_access_enabled}, updated_at = ${now()}
          where id = ${params.organization_id} returning ${organizationColumns(sql)}`;
        if (!row) throw new ApiError("not_found");
        return organizationReply(row);
      },
    }),
  ];
}
