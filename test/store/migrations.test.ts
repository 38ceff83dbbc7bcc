import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { awaitSchema } from "#store/awaited_schema.ts";
import { type Migration, MigrationError, migrate, readMigrations } from "#store/migrations.ts";
import { openSql } from "#store/sql.ts";
import { createEmptyDatabase, type TestDatabase } from "#test/kit/database.ts";

const migration = (version: number, text: string): Migration => ({ version, name: `000${version}_test.sql`, text });

describe("migrations", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createEmptyDatabase();
  });
  after(() => database.drop());
  beforeEach(() => database.sql`drop schema public cascade`.then(() => database.sql`create schema public`));

  const one = migration(1, "create table one (id integer); insert into one values (1);");
  const two = migration(2, "create table two (id integer)");
  const tables = async () => {
    const rows = await database.sql<{ name: string }[]>`
      select table_name as name from information_schema.tables where table_schema = 'public' order by 1`;
    return rows.map((row) => row.name);
  };

  it("are applied once, in order, and only the missing ones", async () => {
    assert.deepEqual(await migrate(database.sql, [one]), ["0001_test.sql"]);
    assert.deepEqual(await migrate(database.sql, [one, two]), ["0002_test.sql"]);
    assert.deepEqual(await migrate(database.sql, [one, two]), []);
    assert.deepEqual(await tables(), ["one", "schema_migration", "two"]);
    assert.equal((await database.sql`select 1 from one`).length, 1);
  });

  it("are refused when an applied file was changed, or when the database is ahead", async () => {
    await migrate(database.sql, [one, two]);
    await assert.rejects(migrate(database.sql, [{ ...one, text: `${one.text} ` }, two]), MigrationError);
    await assert.rejects(migrate(database.sql, [one]), MigrationError);
  });

  it("of a newer version are borne by code that they are compatible with, and by no other", async () => {
    const head = "-- compatible with: 0001";
    await migrate(database.sql, [one, migration(2, `${head}\nalter table one add column more text`)]);
    assert.deepEqual(await migrate(database.sql, [one]), [], "a restart of the version before, or a rollback");
    await awaitSchema(database.sql, { patienceMs: 0, migrations: [one] }).catch((error: Error) =>
      assert.match(error.message, /job queue/, "the schema itself is accepted"),
    );
    await migrate(database.sql, [
      one,
      migration(2, `${head}\nalter table one add column more text`),
      {
        ...migration(3, "alter table one drop column id"),
      },
    ]);
    await assert.rejects(migrate(database.sql, [one]), /0003_test.sql.*does not work with/);
    const started = awaitSchema(database.sql, { patienceMs: 0, migrations: [one] });
    await assert.rejects(started, /0003_test.sql.*does not work with/);
  });

  it("let others through while they wait for a table, and are applied once it is free", async () => {
    await migrate(database.sql, [one]);
    const other = openSql({ databaseUrl: database.url, connectionsMax: 1 });
    let migrated: Promise<string[]> | undefined;
    await database.sql.begin(async (holder) => {
      await holder`lock table one in access share mode`;
      migrated = migrate(other, [one, migration(2, "alter table one add column more text")]);
      const waiting = () => database.sql`select 1 from pg_locks where not granted and relation = 'one'::regclass`;
      while ((await waiting()).length === 0);
      // The migration gives its place in the queue for the lock up, or this would wait for the holder's own end.
      const rows = await database.sql`select id from one`;
      assert.equal(rows.length, 1);
    });
    assert.deepEqual(await migrated, ["0002_test.sql"]);
    await other.end({ timeout: 5 });
  });

  it("that say so run outside of a transaction, statement by statement, again after they were cut off", async () => {
    const text = `-- outside of a transaction
-- compatible with: 0001
drop index concurrently if exists one_id_idx;
create index concurrently one_id_idx on one (id);
`;
    await migrate(database.sql, [one]);
    const cutOff = migration(2, `${text}select 1/0;\n`);
    await assert.rejects(migrate(database.sql, [one, cutOff]), /Cannot apply migration 0002_test.sql/);
    assert.deepEqual(await migrate(database.sql, [one, migration(2, text)]), ["0002_test.sql"]);
    const [index] = await database.sql`select indisvalid from pg_index where indexrelid = 'one_id_idx'::regclass`;
    assert.equal(index?.indisvalid, true);
  });

  it("leave nothing of one that fails, and go on from there", async () => {
    const broken = migration(2, "create table half (id integer); select 1/0;");
    await assert.rejects(migrate(database.sql, [one, broken]), /Cannot apply migration 0002_test.sql/);
    assert.deepEqual(await tables(), ["one", "schema_migration"]);
    assert.deepEqual(await migrate(database.sql, [one, two]), ["0002_test.sql"]);
  });

  it("are applied by one of several processes that start at once", async () => {
    const others = [1, 2, 3].map(() => openSql({ databaseUrl: database.url, connectionsMax: 1 }));
    const applied = await Promise.all(others.map((sql) => migrate(sql, [one, two])));
    assert.deepEqual(applied.flat().sort(), ["0001_test.sql", "0002_test.sql"]);
    await Promise.all(others.map((sql) => sql.end({ timeout: 5 })));
  });

  it("of the product count 1, 2, 3 … and bring up an empty database", async () => {
    const known = await readMigrations();
    assert.deepEqual(
      known.map(({ version }) => version),
      known.map((_, index) => index + 1),
    );
    assert.equal((await migrate(database.sql)).length, known.length);
  });
});
