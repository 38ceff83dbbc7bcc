/**
 * Access keys (`svc_acc_…`) for app, knowledge-base, router and collector hosts; the management API
 * does not accept them. A key belongs to the organization or to one of its projects. Its secret is
 * shown when it is made and never again.
 */

import { type Static, Type } from "@sinclair/typebox";
import { topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { secretPrefixes } from "#contracts/secrets.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { type AnySql, oneRow } from "#store/sql.ts";
import type { ApiDeps } from "./api_deps.ts";
import { type Caller, inReach, reachesEveryProject, requireAdministrator, requireProjectAccess } from "./caller.ts";
import { listRoute } from "./list_route.ts";
import { requireProjectFor } from "./projects.ts";
import { newSecret } from "./secret.ts";

const AccessKey = named(
  "AccessKey",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    project_id: nullableText,
    prefix: Type.String(),
    last_four: Type.String(),
    created_at: Timestamp,
    created_by: nullableText,
    expires_at: OptionalTimestamp,
    revoked_at: OptionalTimestamp,
  }),
  {
    name: "what people call it",
    project_id: "the project whose apps it opens; null for those of the whole organization",
    expires_at: "when it ends to work; null: never",
  },
);
type AccessKey = Static<typeof AccessKey>;

const NewAccessKey = named(
  "NewAccessKey",
  Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" }),
      project_id: Type.Optional(
        Type.String({ format: "uuid", description: "absent: a key of the whole organization" }),
      ),
      expires_at: Type.Optional(Type.String({ format: "date-time" })),
    },
    { additionalProperties: false },
  ),
  {
    name: "what people call it",
    project_id: "the project whose apps it opens",
    expires_at: "when it ends to work; absent: never",
  },
);
const NewAccessKeyReply = dataOf(
  named("AccessKeyWithSecret", Type.Composite([AccessKey, Type.Object({ secret: Type.String() })]), {
    secret: "the whole key, shown this once",
  }),
);
const OneAccessKey = dataOf(AccessKey);

const sortColumns = ["name", "created_at", "expires_at"] as const;

export function accessKeyRoutes({ sql, bus, now, personalAccessToken }: ApiDeps): Route[] {
  const path = "/v1/access-keys";
  const pathOfOne = "/v1/access-keys/{access_key_id}";
  return [
    route({
      method: "POST",
      path,
      summary: "Create an access key; the secret is shown this once",
      guard: personalAccessToken,
      body: NewAccessKey,
      reply: { status: 201, body: NewAccessKeyReply },
      errors: ["forbidden", "not_found"],
      examples: { for_one_project: { body: { name: "Website", project_id: "{{project_id}}" } } },
      handle: async ({ principal, body }) => {
        if (body.project_id === undefined) requireAdministrator(principal);
        else await requireProjectFor(sql, principal, body.project_id);
        const expiresAt = body.expires_at === undefined ? undefined : new Date(body.expires_at);
        if (expiresAt && expiresAt <= now()) {
          throw new ApiError("bad_request", { details: { expires_at: "Expected a time in the future" } });
        }
        const { key, secret } = await createAccessKey(sql, {
          organizationId: principal.organizationId,
          userId: principal.userId,
          name: body.name,
          now: now(),
          ...(body.project_id !== undefined && { projectId: body.project_id }),
          ...(expiresAt && { expiresAt }),
        });
        return { data: { ...key, secret } };
      },
    }),
    listRoute(sql, {
      path,
      summary: "List access keys, revoked ones included",
      guard: personalAccessToken,
      row: AccessKey,
      filters: { project_id: Type.String({ format: "uuid", about: "keys of one project" }) },
      sort: sortColumns,
      examples: { of_a_project: { query: { project_id: "{{project_id}}", page_size: 10 } } },
      rows: ({ principal }) => ({ columns: columns(sql), from: sql`access_key`, where: inReach(sql, principal) }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get an access key, without its secret",
      guard: personalAccessToken,
      reply: { status: 200, body: OneAccessKey },
      errors: ["forbidden"],
      paramsFrom: { access_key_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_key: {} },
      handle: async ({ principal, params }) => ({ data: await findAccessKey(sql, principal, params.access_key_id) }),
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Revoke an access key; it stays listed, and revoking it again changes nothing",
      guard: personalAccessToken,
      reply: { status: 200, body: OneAccessKey },
      errors: ["forbidden"],
      paramsFrom: { access_key_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_key: {} },
      handle: async ({ principal, params }) => {
        await findAccessKey(sql, principal, params.access_key_id);
        const { secret_sha256: sha256, ...key } = oneRow(
          await sql<(AccessKey & { secret_sha256: string })[]>`
            update access_key set revoked_at = coalesce(revoked_at, ${now()})
            where id = ${params.access_key_id} and organization_id = ${principal.organizationId}
            returning ${columns(sql)}, secret_sha256`,
        );
        await bus.publish(topics.credentialRevoked, sha256);
        return { data: key };
      },
    }),
  ];
}

const columns = (sql: AnySql) =>
  sql`id, name, project_id, prefix, last_four, created_at, created_by, expires_at, revoked_at`;

export interface NewKey {
  organizationId: string;
  userId: string;
  /** Absent: a key of the whole organization. */
  projectId?: string;
  name: string;
  now: Date;
  expiresAt?: Date;
}

/** Stores a new key; `secret` cannot be read again. */
export async function createAccessKey(sql: AnySql, key: NewKey): Promise<{ key: AccessKey; secret: string }> {
  const { secret, sha256, prefix, lastFour } = newSecret(secretPrefixes.accessKey);
  const rows = await sql<AccessKey[]>`
    insert into access_key
      (organization_id, project_id, name, secret_sha256, prefix, last_four, created_at, created_by, expires_at)
    values
      (${key.organizationId}, ${key.projectId ?? null}, ${key.name}, ${sha256}, ${prefix}, ${lastFour},
       ${key.now}, ${key.userId}, ${key.expiresAt ?? null})
    returning ${columns(sql)}`;
  return { key: oneRow(rows), secret };
}

/** @throws ApiError not_found, or forbidden for a project or a level that the caller does not reach */
async function findAccessKey(sql: AnySql, caller: Caller, accessKeyId: string): Promise<AccessKey> {
  const [key] = await sql<AccessKey[]>`
    select ${columns(sql)} from access_key
    where id = ${accessKeyId} and organization_id = ${caller.organizationId}`;
  if (!key) throw new ApiError("not_found");
  if (key.project_id !== null) await requireProjectAccess(sql, caller, key.project_id);
  else if (!reachesEveryProject(caller)) throw new ApiError("forbidden");
  return key;
}
