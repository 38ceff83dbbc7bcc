import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Sql } from "#store/sql.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { withLoneTransactions } from "#test/kit/lone_transactions.ts";

describe("a pool whose transactions stand alone", () => {
  let database: TestDatabase;
  let sql: Sql;
  before(async () => {
    database = await createTestDatabase();
    sql = withLoneTransactions(database.sql);
  });
  after(() => database.drop());

  it("refuses a statement, and another transaction, while a transaction waits for it", async () => {
    const later = async () => sql`select 1`;
    await assert.rejects(sql.begin(later), /second connection/);
    await assert.rejects(
      sql.begin(() => sql.unsafe("select 1")),
      /second connection/,
    );
    await assert.rejects(
      sql.begin(() => sql.begin(async () => undefined)),
      /second connection/,
    );
  });

  it("serves everything else as any pool", async () => {
    const rows = await sql.begin((transaction) => transaction`select ${1}::integer as n where ${sql`true`}`);
    assert.deepEqual([...rows], [{ n: 1 }]);
    assert.deepEqual([...(await sql`select ${"a"} as ${sql("name")}`)], [{ name: "a" }]);
    assert.deepEqual([...(await sql.unsafe("select 1 as one"))], [{ one: 1 }]);
  });
});
