/** The api on a database of its own, with an organization, its people and their tokens, and a clock that tests move. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, type AppDeps, createApp } from "#api/app.ts";
import { startWorker } from "#api/worker.ts";
import type { Bus } from "#bus/bus.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { type Logger, silentLogger } from "#http/logger.ts";
import { createRequestMetrics, type RequestMetrics } from "#http/request_metrics.ts";
import { createPersonalAccessToken } from "#identity/personal_access_tokens.ts";
import type { Sql, SqlPool } from "#store/sql.ts";
import { createTestDatabase } from "./database.ts";

export const internalSecret = "internal-secret-of-tests";

/** What the api signs sessions with, and asks of whoever signs in. */
export const sessions = { jwtSecret: "jwt-secret-of-tests", requireEmailVerification: false };

/** A worker's mail, for tests that send none: it would go to files. */
export const workerMail = {
  publicUrl: "http://desk.example:8080",
  mailFrom: "desk@desk.example",
  requestLogDays: 90,
  dataDir: join(tmpdir(), "frontdesk-test-mail"),
};

/** What the app is configured with in tests. */
export const appConfig = {
  publicUrl: "http://desk.example:8080",
  internalSecret,
  encryptionKey: "encryption-key-of-tests",
  ...sessions,
  appDomain: "apps.test",
  allowPrivateAddresses: false,
};

export interface Person {
  userId: string;
  organizationId: string;
  token: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
  body: any;
}

export interface ApiHarness {
  app: App;
  sql: SqlPool;
  /** As `TestDatabase` has it, for other parts of the product. */
  productSql: SqlPool;
  bus: Bus;
  metrics: RequestMetrics;
  databaseUrl: string;
  now(): Date;
  advance(ms: number): void;
  /** A request as JSON; `token` is a bearer credential. */
  call(method: string, path: string, options?: { token?: string; body?: unknown }): Promise<Answer>;
  internal(method: string, path: string, body?: unknown): Promise<Answer>;
  owner: Person;
  /** A member of the same organization who belongs to no project. */
  member: Person;
  /** The owner of another organization. */
  stranger: Person;
  projectId: string;
  close(): Promise<void>;
}

export async function openApiHarness(
  logger: Logger = silentLogger,
  overrides: Partial<AppDeps["config"]> = {},
): Promise<ApiHarness> {
  const database = await createTestDatabase();
  const { sql } = database;
  const bus = createMemoryBus();
  let offsetMs = 0;
  const now = () => new Date(Date.now() + offsetMs);
  const metrics = createRequestMetrics();
  const app = await createApp({
    sql: database.productSql,
    bus,
    logger,
    config: { ...appConfig, ...overrides },
    now,
    metrics,
  });

  const call: ApiHarness["call"] = async (method, path, { token, body } = {}) => {
    const response = await app.fetch(
      new Request(`http://api.test${path}`, {
        method,
        headers: { ...(token && { authorization: `Bearer ${token}` }), "content-type": "application/json" },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };

  const organizationId = await insertOrganization(sql, "Hotel Test");
  const owner = await insertPerson(sql, organizationId, "owner");
  const member = await insertPerson(sql, organizationId, "member");
  const stranger = await insertPerson(sql, await insertOrganization(sql, "Another"), "owner");
  const project = await call("POST", "/v1/projects", { token: owner.token, body: { name: "Desk" } });
  assert.equal(project.status, 201);

  return {
    app,
    sql,
    productSql: database.productSql,
    bus,
    metrics,
    databaseUrl: database.url,
    now,
    advance: (ms) => {
      offsetMs += ms;
    },
    call,
    internal: (method, path, body) => call(method, path, { token: internalSecret, body }),
    owner,
    member,
    stranger,
    projectId: project.body.data.id,
    async close() {
      await app.close();
      await bus.close();
      await database.drop();
    },
  };
}

async function insertOrganization(sql: Sql, name: string): Promise<string> {
  const [row] = await sql<{ id: string }[]>`insert into organization (name) values (${name}) returning id`;
  assert(row);
  return row.id;
}

async function insertPerson(sql: Sql, organizationId: string, role: "owner" | "admin" | "member"): Promise<Person> {
  const email = `${role}-${crypto.randomUUID()}@example.com`;
  const [user] = await sql<{ id: string }[]>`insert into app_user (email) values (${email}) returning id`;
  assert(user);
  await sql`
    insert into organization_member (organization_id, user_id, role) values (${organizationId}, ${user.id}, ${role})`;
  const now = new Date();
  const token = await createPersonalAccessToken(sql, { userId: user.id, organizationId, name: "test", now });
  return { userId: user.id, organizationId, token };
}

/** A worker in this process, on the harness' database and bus. `changes` are to its configuration. */
export function startTestWorker(api: ApiHarness, changes: Partial<Parameters<typeof startWorker>[0]["config"]> = {}) {
  const config = {
    bindAddress: "127.0.0.1",
    workerPort: 0,
    databaseUrl: api.databaseUrl,
    encryptionKey: appConfig.encryptionKey,
    allowPrivateAddresses: appConfig.allowPrivateAddresses,
    ...workerMail,
    ...changes,
  };
  return startWorker({ config, sql: api.productSql, bus: api.bus, logger: silentLogger });
}
