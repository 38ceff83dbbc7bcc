/**
 * API keys (`X-API-Key`), by which programs call the tax service for an organization. A key is
 * shown when it is made and never again; a revoked one keeps its row. Test keys work like live
 * ones, on a number series of their own.
 */

import { type Static, Type } from "@sinclair/typebox";
import { type Bus, topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";
import { type AccessTokens, unauthorized } from "./access_tokens.ts";
import { isApiKey, type KeyEnvironment, keyEnvironments, newApiKey, prefixOf } from "./api_key_format.ts";
import { requireAdministrator } from "./caller.ts";
import { openRemembered } from "./remembered.ts";
import { sha256Hex } from "./secret.ts";

const ApiKey = named(
  "ApiKey",
  Type.Object({
    key_id: Type.Integer(),
    name: Type.String(),
    environment: oneOf(keyEnvironments),
    prefix: Type.String(),
    last_four: Type.String(),
    created_at: Timestamp,
    created_by: nullableText,
    last_used_at: OptionalTimestamp,
    revoked_at: OptionalTimestamp,
  }),
  {
    key_id: "its id",
    name: "what people call it; empty where it has no name",
    environment: "`test` keys calculate and book apart from `live` ones",
    last_used_at: "when a request last came with it, to a few minutes; null: never",
  },
);
type ApiKey = Static<typeof ApiKey>;

const CreateApiKey = named(
  "NewApiKey",
  Type.Object({
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" }),
    ),
    environment: Type.Optional(oneOf(keyEnvironments)),
  }),
  {
    name: "what people call it",
    environment: "`test` keys calculate and book apart from `live` ones; `live` unless given",
  },
);
/** The raw key is `api_key`, once. */
const CreatedApiKey = named("ApiKeyWithSecret", Type.Composite([ApiKey, Type.Object({ api_key: Type.String() })]), {
  api_key: "the whole key, shown this once",
});

export interface ApiKeyDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  accessTokens: Pick<AccessTokens, "member">;
}

export function apiKeyRoutes({ sql, bus, now, accessTokens }: ApiKeyDeps): Route[] {
  const path = "/v1/api-keys";
  return [
    route({
      method: "POST",
      path,
      summary: "Create an API key; the key itself is shown this once",
      guard: accessTokens.member,
      body: CreateApiKey,
      reply: { status: 201, body: CreatedApiKey },
      errors: ["forbidden"],
      examples: { a_test_key: { body: { name: "Booking engine", environment: "test" } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        const [organization] = await sql<{ api_access_enabled: boolean }[]>`
          select api_access_enabled from organization where id = ${principal.organizationId}`;
        if (!organization?.api_access_enabled) {
          throw new ApiError("forbidden", { detail: "API access is not enabled for this organization" });
        }
        const environment = body.environment ?? "live";
        const secret = newApiKey(environment);
        const key = oneRow(
          await sql<ApiKey[]>`
            insert into api_key
              (organization_id, name, environment, secret_sha256, prefix, last_four, created_at, created_by)
            values
              (${principal.organizationId}, ${body.name ?? "API key"}, ${environment}, ${sha256Hex(secret)},
               ${prefixOf(environment)}, ${secret.slice(-4)}, ${now()}, ${principal.userId})
            returning ${columns(sql)}`,
        );
        return { ...key, api_key: secret };
      },
    }),
    route({
      method: "GET",
      path,
      summary: "List the organization's API keys",
      guard: accessTokens.member,
      query: { include_revoked: Type.Optional(Type.Boolean({ description: "default false" })) },
      reply: { status: 200, body: named("ApiKeys", Type.Array(ApiKey)) },
      examples: { with_revoked_ones: { query: { include_revoked: true } } },
      handle: async ({ principal, query }) => {
        const revoked = query.include_revoked ? sql`true` : sql`revoked_at is null`;
        return [
          ...(await sql<ApiKey[]>`
            select ${columns(sql)} from api_key
            where organization_id = ${principal.organizationId} and ${revoked} order by id desc`),
        ];
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/api-keys/{key_id}",
      summary: "Revoke an API key; revoking it again changes nothing",
      guard: accessTokens.member,
      params: { key_id: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }) },
      reply: { status: 204 },
      errors: ["forbidden"],
      paramsFrom: { key_id: { route: `POST ${path}`, field: "key_id" } },
      examples: { a_key: {} },
      handle: async ({ principal, params }) => {
        const [found] = await sql<{ secret_sha256: string }[]>`
          select secret_sha256 from api_key
          where id = ${params.key_id} and organization_id = ${principal.organizationId}`;
        if (!found) throw new ApiError("not_found");
        requireAdministrator(principal);
        await sql`update api_key set revoked_at = coalesce(revoked_at, ${now()}) where id = ${params.key_id}`;
        await bus.publish(topics.credentialRevoked, found.secret_sha256);
        return new Response(null, { status: 204 });
      },
    }),
  ];
}

const columns = (sql: AnySql) =>
  sql`id as key_id, name, environment, prefix, last_four, created_at, created_by, last_used_at, revoked_at`;

/** Who is behind a billable call: a program with a key, or a person with a session. */
export interface BillableCaller {
  organizationId: string;
  environment: KeyEnvironment;
  userId: string | null;
  apiKeyId: number | null;
}

export interface ApiKeys {
  /** An API key, or an access token where there is none. With both, the key decides. */
  billable: Guard<BillableCaller>;
  close(): Promise<void>;
}

const refusals = {
  missing: "Missing credential: expected X-API-Key, or Authorization: Bearer with an access token",
  malformed: "Malformed credential: X-API-Key is no API key, check that it was copied whole",
  notAccepted: "Credential not accepted: the API key is unknown or revoked",
};

export async function openApiKeys(deps: {
  sql: Sql;
  bus: Bus;
  now(): Date;
  accessTokens: Pick<AccessTokens, "member">;
}): Promise<ApiKeys> {
  const { sql, now, accessTokens } = deps;
  const remembered = await openRemembered<BillableCaller>(deps);
  return {
    billable: {
      scheme: "api_key_or_access_token",
      // A person without an organization.
      refuses: ["forbidden"],
      check: async (request) => {
        const key = request.headers.get("x-api-key");
        if (key === null) {
          if (!request.headers.get("authorization")) throw unauthorized(refusals.missing);
          const { organizationId, userId } = await accessTokens.member.check(request);
          return { organizationId, userId, apiKeyId: null, environment: "live" };
        }
        if (key.trim() === "") throw unauthorized(refusals.missing);
        if (!isApiKey(key.trim())) throw unauthorized(refusals.malformed);
        const sha256 = sha256Hex(key.trim());
        const caller = await remembered.get(sha256, () => findKey(sql, sha256, now()));
        if (!caller) throw unauthorized(refusals.notAccepted);
        return caller;
      },
    },
    close: remembered.close,
  };
}

/** Finds a living key and notes its use, at most once a minute. */
async function findKey(sql: Sql, sha256: string, now: Date): Promise<{ value: BillableCaller } | undefined> {
  const [row] = await sql<{ id: number; organization_id: string; environment: KeyEnvironment; noted: boolean }[]>`
    select id, organization_id, environment,
           coalesce(last_used_at > ${new Date(now.getTime() - 60_000)}, false) as noted
    from api_key where secret_sha256 = ${sha256} and revoked_at is null`;
  if (!row) return undefined;
  if (!row.noted) await sql`update api_key set last_used_at = ${now} where id = ${row.id}`;
  const value = { organizationId: row.organization_id, environment: row.environment, userId: null, apiKeyId: row.id };
  return { value };
}
