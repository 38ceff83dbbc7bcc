/**
 * Connect tokens: an app's host gives one to a browser, for one end user, for 24 hours. It opens the
 * requirement-fulfilment endpoints below `/v1/connect` and nothing else.
 */
import { Type } from "@sinclair/typebox";
import type { HostRouteDeps } from "#apps/hosted_app.ts";
import { runLimits } from "#contracts/run_event.ts";
import { secretPrefixes } from "#contracts/secrets.ts";
import { type Route, route } from "#http/route.ts";
import { newSecret } from "#identity/secret.ts";

export function connectTokenRoutes({ sql, now, hostedApp }: HostRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/connect/tokens",
      summary: "Create a connect token for one end user; it is shown this once",
      guard: hostedApp.holdsKey,
      body: Type.Object({ user_id: Type.String({ minLength: 1, maxLength: 200 }) }, { additionalProperties: false }),
      reply: {
        status: 201,
        body: Type.Object({
          data: Type.Object({
            token: Type.String(),
            user_id: Type.String(),
            expires_at: Type.String({ format: "date-time" }),
          }),
        }),
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
