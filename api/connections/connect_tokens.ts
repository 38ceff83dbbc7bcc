/**
 * Connect tokens: an app's host gives one to a browser, for one end user, for 24 hours. It opens the
 * requirement-fulfilment endpoints below `/v1/connect` and nothing else.
 */

import { Type } from "@sinclair/typebox";
import type { HostRouteDeps } from "#apps/hosted_app.ts";
import { named } from "#contracts/named_schema.ts";
import { runLimits } from "#contracts/run_event.ts";
import { secretPrefixes } from "#contracts/secrets.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { newSecret } from "#identity/secret.ts";
import { purgeBefore } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";

const ConnectToken = named(
  "ConnectToken",
  Type.Object({ token: Type.String(), user_id: Type.String(), expires_at: Type.String({ format: "date-time" }) }),
  { token: "the whole token, shown this once", user_id: "your name for the end user" },
);

export function connectTokenRoutes({ sql, now, hostedApp }: HostRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/connect/tokens",
      summary: "Create a connect token for one end user; it is shown this once",
      guard: hostedApp.holdsKey,
      body: named(
        "NewConnectToken",
        Type.Object({ user_id: Type.String({ minLength: 1, maxLength: 200 }) }, { additionalProperties: false }),
        {
          user_id: "your name for the end user",
        },
      ),
      reply: {
        status: 201,
        body: dataOf(ConnectToken),
      },
      examples: { one_guest: { body: { user_id: "guest-17" } } },
      handle: async ({ principal: app, body }) => {
        const { secret, sha256 } = newSecret(secretPrefixes.connectToken);
        const expiresAt = new Date(now().getTime() + runLimits.connectTokenHours * 3_600_000);
        await sql`
          insert into connect_token (organization_id, app_id, user_id, secret_sha256, created_at, expires_at)
          values (${app.organizationId}, ${app.id}, ${body.user_id}, ${sha256}, ${now()}, ${expiresAt})`;
        return { data: { token: secret, user_id: body.user_id, expires_at: expiresAt.toISOString() } };
      },
    }),
  ];
}

/** Deletes tokens that are over. */
export async function purgeConnectTokens({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  await purgeBefore(sql, { table: "connect_token", column: "expires_at" }, now());
}
