import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
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
