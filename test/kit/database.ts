/**
 * Databases for tests: each test file gets its own, cloned from a template that is migrated once.
 * The server is `TEST_DATABASE_URL`'s (the test runner starts one for the whole run), or an
 * embedded one of this process when a file is run by itself.
 */
import { createHash, randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepareJobs } from "#store/jobs.ts";
import { type Migration, migrate, readMigrations } from "#store/migrations.ts";
import { openSql, type Sql, type SqlPool } from "#store/sql.ts";
import { withLoneTransactions } from "./lone_transactions.ts";

export interface TestDatabase {
  url: string;
  sql: SqlPool;
  /** What the product is given: the same pool, in which no transaction may wait for a second connection. */
  productSql: SqlPool;
  /** Ends `sql` and removes the database. */
  drop(): Promise<void>;
}

const templateLockKey = 7_305_002;

/** Making a database, and waiting for whoever makes the template, takes as long as it takes. */
const unhurried = { statementMsMax: 0, lockMsMax: 0 };

/** An empty database with the whole schema. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(await readMigrations());
}

/** A database without any schema: for tests of the migrations themselves. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return createDatabase(undefined);
}

async function createDatabase(migrations: Migration[] | undefined): Promise<TestDatabase> {
  const server = await openServer();
  const admin = openSql({ databaseUrl: server.url, connectionsMax: 1, ...unhurried });
  const name = `test_${randomBytes(8).toString("hex")}`;
  const template = migrations && (await ensureTemplate(admin, server.url, migrations));
  await admin`create database ${admin(name)} template ${admin(template ?? "template0")}`;
  const url = urlOf(server.url, name);
  const sql = openSql({ databaseUrl: url });
  return {
    url,
    sql,
    productSql: withLoneTransactions(sql),
    async drop() {
      await sql.end({ timeout: 5 });
      await admin`drop database ${admin(name)} with (force)`;
      await admin.end({ timeout: 5 });
      await server.stop();
    },
  };
}

function urlOf(serverUrl: string, databaseName: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${databaseName}`;
  return url.href;
}

/** Named for what is in it, so that a changed migration makes a new one. Built aside, renamed when complete. */
async function ensureTemplate(admin: Sql, serverUrl: string, migrations: readonly Migration[]): Promise<string> {
  const digest = createHash("sha256").update(JSON.stringify(migrations)).digest("hex").slice(0, 16);
  const template = `template_${digest}`;
  const building = `${template}_building`;
  await admin`select pg_advisory_lock(${templateLockKey})`;
  try {
    const existing = await admin`select 1 from pg_database where datname = ${template}`;
    if (existing.length > 0) return template;
    await admin`drop database if exists ${admin(building)} with (force)`;
    await admin`create database ${admin(building)} template template0`;
    const sql = openSql({ databaseUrl: urlOf(serverUrl, building), connectionsMax: 1, ...unhurried });
    try {
      await migrate(sql, migrations);
      await prepareJobs(urlOf(serverUrl, building));
    } finally {
      await sql.end({ timeout: 5 });
    }
    await admin`alter database ${admin(building)} rename to ${admin(template)}`;
    return template;
  } finally {
    await admin`select pg_advisory_unlock(${templateLockKey})`;
  }
}

async function openServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const url = process.env.TEST_DATABASE_URL;
  if (url) return { url, stop: async () => undefined };
  const { startEmbeddedPostgres } = await import("#standalone/embedded_postgres.ts");
  const dataDir = join(tmpdir(), `frontdesk-test-${randomBytes(6).toString("hex")}`);
  const postgres = await startEmbeddedPostgres({ dataDir, durable: false });
  return {
    url: postgres.url,
    async stop() {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
