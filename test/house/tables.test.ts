import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { readRooms, roomOf, root } from "./rooms.ts";
import { schemaSql } from "./schema_sql.ts";
import { productFiles, tableWrites, writesIn } from "./tables.ts";

const rooms = readRooms();
const ownerOf = new Map(rooms.flatMap(({ name, tables = [] }) => tables.map((table) => [table, name] as const)));
const owned = [...ownerOf.keys()];

describe("the tables", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());

  it("have one room each, in house.json", async () => {
    const rows = await database.sql<{ name: string }[]>`
      select table_name as name from information_schema.tables where table_schema = 'public'`;
    assert.deepEqual(rows.map(({ name }) => name).sort(), [...owned].sort());
    assert.equal(owned.length, rooms.flatMap(({ tables = [] }) => tables).length, "a table of two rooms");
  });

  it("are printed in api/store/schema.sql as the migrations make them: npm run schema", async () => {
    const printed = readFileSync(join(root, "api", "store", "schema.sql"), "utf8");
    assert.ok(printed === (await schemaSql(database.sql)), "api/store/schema.sql is out of date");
  });

  it("are written by their room alone", () => {
    const writes = tableWrites(owned);
    const written = new Set(writes.map(({ table }) => table));
    assert.deepEqual(
      owned.filter((table) => !written.has(table)),
      [],
      "tables that nobody is seen to write",
    );
    const strangers = writes.filter(({ table, path }) => roomOf(rooms, path)?.name !== ownerOf.get(table));
    assert.deepEqual(
      strangers.map(({ table, path }) => `${path} writes ${table}`),
      [],
    );
  });

  it("are named in the call, where one function deletes of any table", () => {
    const calls = productFiles().map((path) => readFileSync(join(root, path), "utf8").matchAll(/\bpurgeBefore\((.*)/g));
    const unnamed = calls
      .flatMap((found) => [...found].map(([call]) => call))
      .filter((call) => !/table: "\w+"/.test(call));
    assert.deepEqual(
      unnamed.filter((call) => !call.startsWith("purgeBefore(sql: Sql, where")),
      [],
    );
  });

  it("are recognized in statements of every form", () => {
    const text = `
      insert into run (id) values (1); update only "call" set x = 1; DELETE FROM app_user where true;
      select update_run from nowhere; purgeBefore(sql, { table: "livekit_webhook", column: "at" }); update the call`;
    const tables = ["run", "call", "app_user", "livekit_webhook", "nowhere", "app"];
    assert.deepEqual(writesIn(text, tables), ["run", "call", "app_user", "livekit_webhook"]);
  });
});
