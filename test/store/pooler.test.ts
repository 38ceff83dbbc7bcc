/** A PgBouncer between the api and Postgres; workers and migrations refuse it. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type App, createApp } from "#api/app.ts";
import { openMigratedSql } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { PoolerError } from "#store/pooler.ts";
import { type AnySql, openSql, type SqlPool } from "#store/sql.ts";
import { appConfig, workerMail } from "#test/kit/api_harness.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type PgBouncer, pgBouncerMissing, startPgBouncer } from "#test/kit/pgbouncer.ts";

const people = 30;
const password = "correct horse battery";

describe("an api behind PgBouncer", { skip: pgBouncerMissing }, () => {
  let database: TestDatabase;
  let pooler: PgBouncer;
  let sql: SqlPool;
  let app: App;
  const bus = createMemoryBus();
  before(async () => {
    database = await createTestDatabase();
    // Fewer connections than the pool of the api: each of its transactions gets another one.
    pooler = await startPgBouncer(database.url, 4);
    sql = await openMigratedSql({ databaseUrl: `${pooler.url}?prepare=false`, migrate: "never" });
    app = await createApp({ sql, bus, logger: silentLogger, config: appConfig, now: () => new Date() });
  });
  after(async () => {
    await app.close();
    await bus.close();
    await sql.end({ timeout: 5 });
    await pooler.stop();
    await database.drop();
  });

  const call = async (method: string, path: string, token: string | undefined, body?: unknown) => {
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await app.fetch(new Request(`http://api.test${path}`, init));
    // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
    return { status: response.status, body: (await response.json()) as any };
  };

  it("answers everybody with their own, many at once", async () => {
    const life = async (name: string) => {
      const email = `${name}@inn.example`;
      const signedUp = await call("POST", "/v1/auth/signup", undefined, { email, password, organization_name: name });
      assert.equal(signedUp.status, 201, JSON.stringify(signedUp.body));
      const token = signedUp.body.access_token;
      await database.sql`update organization set api_access_enabled = true where name = ${name}`;
      const stay = {
        jurisdiction_code: "IT-RM-ROM",
        stay_date: "2026-12-01",
        nights: 3,
        nightly_rate: 120,
        currency: "EUR",
      };
      const book = { external_reference: name, calculation: stay };
      const booked = await call("POST", "/v1/bookings", token, book);
      assert.equal(booked.status, 201, JSON.stringify(booked.body));
      const refunded = await call("POST", `/v1/bookings/${booked.body.id}/refund`, token, { nights: 1 });
      assert.deepEqual([refunded.status, refunded.body.calculation?.nights], [200, 2], JSON.stringify(refunded.body));
      const { body: me } = await call("GET", "/v1/auth/me", token);
      const { body: listed } = await call("GET", "/v1/bookings", token);
      assert.deepEqual([me.user.email, me.organization.name], [email, name]);
      assert.deepEqual(
        listed.items.map((item: { external_reference: string }) => item.external_reference),
        [name],
      );
    };
    await Promise.all(Array.from({ length: people }, (_, index) => life(`inn-${index}`)));
  });

  it("bounds its transactions, though the connections are anybody's", async () => {
    const settings = (client: AnySql) => client`
      select current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement`;
    const within = await sql.begin((transaction) => settings(transaction));
    assert.deepEqual([...within], [{ lock: "5s", statement: "10s" }]);
    assert.deepEqual([...(await settings(sql))], [{ lock: "0", statement: "0" }], "the next client's are its own");
  });

  it("says what it expects where the address does not say that there is a pooler", async () => {
    const plain = openMigratedSql({ databaseUrl: pooler.url, migrate: "never" });
    await assert.rejects(plain, (error) => error instanceof PoolerError && /\?prepare=false/.test(error.message));
    const migrating = openMigratedSql({ databaseUrl: `${pooler.url}?prepare=false` });
    await assert.rejects(migrating, (error) => error instanceof PoolerError && /MIGRATE=never/.test(error.message));
  });

  it("is no place for a worker, which says why", async () => {
    for (const databaseUrl of [pooler.url, `${pooler.url}?prepare=false`]) {
      const { encryptionKey } = appConfig;
      const config = {
        bindAddress: "127.0.0.1",
        workerPort: 0,
        databaseUrl,
        encryptionKey,
        allowPrivateAddresses: false,
        ...workerMail,
      };
      const started = startWorker({ config: { ...config, migrate: "never" }, bus, logger: silentLogger });
      await assert.rejects(started, (error) => error instanceof PoolerError && /LISTEN/.test(error.message));
    }
  });
});

describe("an api straight before Postgres", () => {
  it("is not taken for one behind a pooler", async () => {
    const database = await createTestDatabase();
    const sql = await openMigratedSql({ databaseUrl: database.url, needsSession: "a worker" });
    const limited = openSql({ databaseUrl: database.url, lockMsMax: 1234 });
    assert.deepEqual([...(await limited`select current_setting('lock_timeout') as lock`)], [{ lock: "1234ms" }]);
    await limited.end({ timeout: 5 });
    await sql.end({ timeout: 5 });
    await database.drop();
  });
});
