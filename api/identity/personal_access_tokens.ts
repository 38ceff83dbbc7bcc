/**
 * Personal access tokens, the credential of the management API: people make, see and revoke their
 * own here; the bootstrap and sign-in links make them too.
 */

import { type Static, Type } from "@sinclair/typebox";
import { type Bus, topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { secretPrefixes } from "#contracts/secrets.ts";
import { type Route, route } from "#http/route.ts";
import { OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";
import type { AccessTokens } from "./access_tokens.ts";
import { newSecret } from "./secret.ts";

const PersonalAccessToken = named(
  "PersonalAccessToken",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    prefix: Type.String(),
    last_four: Type.String(),
    created_at: Timestamp,
    expires_at: OptionalTimestamp,
    revoked_at: OptionalTimestamp,
  }),
  {
    name: "what people call it",
    expires_at: "when it ends to work; null: never",
  },
);
const NewToken = named(
  "NewPersonalAccessToken",
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" }),
    expires_at: Type.Optional(Type.String({ format: "date-time", description: "absent: it does not expire" })),
  }),
  { name: "what people call it", expires_at: "when it ends to work" },
);
type PersonalAccessToken = Static<typeof PersonalAccessToken>;

export interface NewToken {
  userId: string;
  organizationId: string;
  name: string;
  now: Date;
  expiresAt?: Date;
}

/** Stores a new token and returns its secret, which nobody can read again. */
export async function createPersonalAccessToken(sql: AnySql, token: NewToken): Promise<string> {
  return (await insertToken(sql, token)).secret;
}

async function insertToken(sql: AnySql, token: NewToken): Promise<{ row: PersonalAccessToken; secret: string }> {
  const { secret, sha256, prefix, lastFour } = newSecret(secretPrefixes.personalAccessToken);
  const rows = await sql<PersonalAccessToken[]>`
    insert into personal_access_token
      (user_id, organization_id, name, secret_sha256, prefix, last_four, created_at, expires_at)
    values
      (${token.userId}, ${token.organizationId}, ${token.name}, ${sha256}, ${prefix}, ${lastFour},
       ${token.now}, ${token.expiresAt ?? null})
    returning ${columns(sql)}`;
  return { row: oneRow(rows), secret };
}

/**
 * Revokes every token of a person, in all organizations, and sign-in links that would make another.
 * @returns the SHA-256 of each, for whoever remembers what it opens
 */
export async function revokeTokensOf(sql: AnySql, userId: string, now: Date): Promise<string[]> {
  await sql`delete from sign_in_link where user_id = ${userId} and redeemed_at is null`;
  const rows = await sql<{ secret_sha256: string }[]>`
    update personal_access_token set revoked_at = ${now}
    where user_id = ${userId} and revoked_at is null and (expires_at is null or expires_at > ${now})
    returning secret_sha256`;
  return rows.map(({ secret_sha256 }) => secret_sha256);
}

const columns = (sql: AnySql) => sql`id, name, prefix, last_four, created_at, expires_at, revoked_at`;

export function personalAccessTokenRoutes({
  sql,
  bus,
  now,
  accessTokens,
}: {
  sql: Sql;
  bus: Bus;
  now(): Date;
  accessTokens: Pick<AccessTokens, "member">;
}): Route[] {
  const path = "/v1/personal-access-tokens";
  return [
    route({
      method: "POST",
      path,
      summary: "Create a personal access token for the management API; the token is shown this once",
      guard: accessTokens.member,
      body: NewToken,
      reply: {
        status: 201,
        body: named(
          "PersonalAccessTokenWithSecret",
          Type.Composite([PersonalAccessToken, Type.Object({ token: Type.String() })]),
          {
            token: "the whole token, shown this once",
          },
        ),
      },
      errors: ["forbidden"],
      examples: {
        until_the_new_year: { body: { name: "Deployment", expires_at: "2099-01-01T00:00:00Z" } },
        already_over: {
          body: { name: "Deployment", expires_at: "2020-01-01T00:00:00Z" },
          status: 422,
          answer: {
            detail: [{ type: "value_error", loc: ["body", "expires_at"], msg: "Expected a time in the future" }],
          },
        },
      },
      handle: async ({ principal: { userId, organizationId }, body }) => {
        const expiresAt = body.expires_at === undefined ? undefined : new Date(body.expires_at);
        if (expiresAt && expiresAt <= now())
          throw invalidRequest("body", "expires_at", "Expected a time in the future");
        const { row, secret } = await insertToken(sql, {
          userId,
          organizationId,
          name: body.name,
          now: now(),
          ...(expiresAt && { expiresAt }),
        });
        return { ...row, token: secret };
      },
    }),
    route({
      method: "GET",
      path,
      summary: "List the caller's own tokens in this organization",
      guard: accessTokens.member,
      query: { include_revoked: Type.Optional(Type.Boolean({ description: "default false" })) },
      reply: { status: 200, body: named("PersonalAccessTokens", Type.Array(PersonalAccessToken)) },
      errors: ["forbidden"],
      examples: { with_revoked_ones: { query: { include_revoked: true } } },
      handle: async ({ principal: { userId, organizationId }, query }) => {
        const revoked = query.include_revoked ? sql`true` : sql`revoked_at is null`;
        return [
          ...(await sql<PersonalAccessToken[]>`
            select ${columns(sql)} from personal_access_token
            where user_id = ${userId} and organization_id = ${organizationId} and ${revoked}
            order by created_at desc, id`),
        ];
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/personal-access-tokens/{token_id}",
      summary: "Revoke one of the caller's own tokens; revoking it again changes nothing",
      guard: accessTokens.member,
      reply: { status: 204 },
      errors: ["forbidden"],
      paramsFrom: { token_id: { route: `POST ${path}`, field: "id" } },
      examples: { a_token: {} },
      handle: async ({ principal: { userId, organizationId }, params }) => {
        const [row] = await sql<{ secret_sha256: string }[]>`
          update personal_access_token set revoked_at = coalesce(revoked_at, ${now()})
          where id = ${params.token_id} and user_id = ${userId} and organization_id = ${organizationId}
          returning secret_sha256`;
        if (!row) throw new ApiError("not_found");
        await bus.publish(topics.credentialRevoked, row.secret_sha256);
        return new Response(null, { status: 204 });
      },
    }),
  ];
}
