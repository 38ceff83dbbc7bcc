/**
 * Connections: credentials for model and tool vendors. The secret is encrypted at rest, never
 * answered, and used by the worker and by the calls of the connection's project only.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, inReach, requireProjectAccess } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import { requireProjectFor } from "#identity/projects.ts";
import { AddressRefusedError, parsePublicUrl } from "#outbound/address_guard.ts";
import { connectionKinds } from "#providers/catalogue.ts";
import type { Encryption } from "#store/encryption.ts";
import type { AnySql } from "#store/sql.ts";

/** Vendors of models, each with its own key and `base_url`, and `bearer`: tools and MCP servers. */
const connectionProviders = [...connectionKinds, "bearer"];

const uuid = Type.String({ format: "uuid" });
const Connection = named(
  "Connection",
  Type.Object({
    id: uuid,
    name: Type.String(),
    project_id: uuid,
    provider: oneOf(connectionProviders),
    base_url: nullableText,
    last_four: Type.String(),
    created_at: Timestamp,
    created_by: nullableText,
    updated_at: Timestamp,
    updated_by: nullableText,
  }),
  {
    name: "what people call it",
    provider: "the vendor; `bearer` for tools and MCP servers",
    base_url: "the vendor's address, where it is another than usual; null for the usual one",
  },
);
type Connection = Static<typeof Connection>;

const name = Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" });
const secret = Type.String({ minLength: 1, maxLength: 8192, description: "stored encrypted, never answered" });
const baseUrl = Type.String({ maxLength: 2048, pattern: "^https?://", description: "an http or https URL" });
const NewConnection = named(
  "NewConnection",
  Type.Object(
    { name, project_id: uuid, provider: oneOf(connectionProviders), base_url: Type.Optional(baseUrl), secret },
    { additionalProperties: false },
  ),
  {
    name: "what people call it",
    provider: "the vendor; `bearer` for tools and MCP servers",
    base_url: "the vendor's address, where it is another than usual",
    secret: "the vendor's key or token",
  },
);
const ConnectionChange = named(
  "ConnectionChange",
  Type.Object(
    { name: Type.Optional(name), base_url: Type.Optional(baseUrl), secret: Type.Optional(secret) },
    { additionalProperties: false },
  ),
  {
    name: "another name",
    base_url: "another address of the vendor",
    secret: "takes the place of the old one at once",
  },
);
const OneConnection = dataOf(Connection);
const sortColumns = ["name", "created_at", "updated_at"] as const;

export interface ConnectionDeps extends ApiDeps {
  encryption: Encryption;
  allowPrivateAddresses: boolean;
}

export function connectionRoutes(deps: ConnectionDeps): Route[] {
  const { sql, now, encryption, personalAccessToken: guard } = deps;
  const path = "/v1/connections";
  const pathOfOne = "/v1/connections/{connection_id}";
  return [
    route({
      method: "POST",
      path,
      summary: "Create a connection",
      guard,
      body: NewConnection,
      reply: { status: 201, body: OneConnection },
      errors: ["forbidden", "not_found"],
      examples: {
        a_model_provider: {
          body: { name: "Models", project_id: "{{project_id}}", provider: "openai", secret: "sk-example" },
        },
      },
      handle: async ({ principal, body }) => {
        requirePublicUrl(body.base_url, deps);
        await requireProjectFor(sql, principal, body.project_id);
        const id = crypto.randomUUID();
        const [connection] = await sql<Connection[]>`
          insert into connection
            (id, organization_id, project_id, name, provider, base_url, secret_encrypted, last_four,
             created_at, created_by, updated_at, updated_by)
          select ${id}, organization_id, id, ${body.name}, ${body.provider}, ${body.base_url ?? null},
                 ${encryption.seal(body.secret, id)}, ${lastFourOf(body.secret)},
                 ${now()}, ${principal.userId}, ${now()}, ${principal.userId}
          from project
          where id = ${body.project_id} and organization_id = ${principal.organizationId} and deleted_at is null
          for share
          returning ${columns(sql)}`;
        if (!connection) throw new ApiError("not_found");
        return { data: connection };
      },
    }),
    listRoute(sql, {
      path,
      summary: "List connections, without their secrets",
      guard,
      row: Connection,
      filters: { project_id: { ...uuid, about: "connections of one project" } },
      sort: sortColumns,
      examples: { of_a_project: { query: { project_id: "{{project_id}}", sort: "name" } } },
      rows: ({ principal }) => ({ columns: columns(sql), from: sql`connection`, where: inReach(sql, principal) }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get a connection, without its secret",
      guard,
      reply: { status: 200, body: OneConnection },
      errors: ["forbidden"],
      paramsFrom: { connection_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_connection: {} },
      handle: async ({ principal, params }) => ({ data: await findConnection(sql, principal, params.connection_id) }),
    }),
    route({
      method: "PATCH",
      path: pathOfOne,
      summary: "Change a connection or replace its secret",
      guard,
      body: ConnectionChange,
      reply: { status: 200, body: OneConnection },
      errors: ["forbidden"],
      paramsFrom: { connection_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_new_secret: { body: { secret: "sk-another" } } },
      handle: async ({ principal, params, body }) => {
        requirePublicUrl(body.base_url, deps);
        await findConnection(sql, principal, params.connection_id);
        const sealed = body.secret === undefined ? undefined : encryption.seal(body.secret, params.connection_id);
        const [connection] = await sql<Connection[]>`
          update connection
          set name = coalesce(${body.name ?? null}, name),
              base_url = coalesce(${body.base_url ?? null}, base_url),
              secret_encrypted = coalesce(${sealed ?? null}, secret_encrypted),
              last_four = coalesce(${body.secret === undefined ? null : lastFourOf(body.secret)}, last_four),
              updated_at = ${now()}, updated_by = ${principal.userId}
          where id = ${params.connection_id} and organization_id = ${principal.organizationId}
          returning ${columns(sql)}`;
        if (!connection) throw new ApiError("not_found");
        return { data: connection };
      },
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Delete a connection; nodes that name it fail from now on",
      guard,
      reply: { status: 200, body: OneConnection },
      errors: ["forbidden"],
      paramsFrom: { connection_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_connection: {} },
      handle: async ({ principal, params }) => {
        await findConnection(sql, principal, params.connection_id);
        const [connection] = await sql<Connection[]>`
          delete from connection where id = ${params.connection_id} and organization_id = ${principal.organizationId}
          returning ${columns(sql)}`;
        if (!connection) throw new ApiError("not_found");
        return { data: connection };
      },
    }),
  ];
}

/** The endpoint behind a connection, secret included: for what calls it, never for an answer. */
export interface OpenedConnection {
  /** One of `connectionProviders`. */
  provider: string;
  baseUrl: string | undefined;
  secret: string;
}

/** Undefined when the project has no such connection. */
export async function openConnection(
  { sql, encryption }: Pick<ConnectionDeps, "sql" | "encryption">,
  projectId: string,
  connectionId: string,
): Promise<OpenedConnection | undefined> {
  return (await openConnections({ sql, encryption }, projectId, [connectionId])).get(connectionId);
}

/** Those of `connectionIds` that the project has, by their ids as they are given. */
export async function openConnections(
  { sql, encryption }: { sql: AnySql; encryption: Encryption },
  projectId: string,
  connectionIds: readonly string[],
): Promise<ReadonlyMap<string, OpenedConnection>> {
  const rows = await sql<{ id: string; provider: string; base_url: string | null; secret_encrypted: Buffer }[]>`
    select id, provider, base_url, secret_encrypted from connection
    where project_id = ${projectId} and id = any (${[...connectionIds]}::uuid[])`;
  const byId = new Map(rows.map((row) => [row.id, row]));
  return new Map(
    connectionIds.flatMap((given): [string, OpenedConnection][] => {
      const row = byId.get(given.toLowerCase());
      if (!row) return [];
      const secret = encryption.open(row.secret_encrypted, row.id);
      return [[given, { provider: row.provider, baseUrl: row.base_url ?? undefined, secret }]];
    }),
  );
}

/** @throws ApiError bad_request for an address that leads inside; the name is resolved when it is dialled */
function requirePublicUrl(url: string | undefined, { allowPrivateAddresses }: ConnectionDeps): void {
  if (url === undefined) return;
  try {
    parsePublicUrl(url, { protocols: ["https:", "http:"], allowPrivateAddresses });
  } catch (error) {
    if (!(error instanceof AddressRefusedError)) throw error;
    throw new ApiError("bad_request", { details: { base_url: error.message } });
  }
}

/** Nothing is shown of a secret too short to hide behind its end. */
const lastFourOf = (text: string) => (text.length >= 12 ? text.slice(-4) : "");

const columns = (sql: AnySql) =>
  sql`id, name, project_id, provider, base_url, last_four, created_at, created_by, updated_at, updated_by`;

/** @throws ApiError not_found, or forbidden for a project that the caller does not reach */
export async function findConnection(sql: AnySql, caller: Caller, connectionId: string): Promise<Connection> {
  const [connection] = await sql<Connection[]>`
    select ${columns(sql)} from connection where id = ${connectionId} and organization_id = ${caller.organizationId}`;
  if (!connection) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, connection.project_id);
  return connection;
}
