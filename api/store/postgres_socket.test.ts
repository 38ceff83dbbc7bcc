import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { CutLink } from "#test/kit/sockets/cut_link.ts";
import { openSql } from "./sql.ts";

const connections = 4;
const talkers = 24;
const rounds = 12;

describe("connections that are reset", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());

  it("leave no statement without an answer, also what is asked between a socket's error and its end", async () => {
    const databaseUrl = new URL(database.url);
    const link = await CutLink.open(Number(databaseUrl.port));
    databaseUrl.port = new URL(link.url).port;
    const sql = openSql({ databaseUrl: databaseUrl.href, connectionsMax: connections });
    let answered = 0;
    let failed = 0;
    for (let round = 0; round < rounds; round += 1) {
      let isOver = false;
      const target = answered + 5 * talkers;
      const talk = async () => {
        while (!isOver) {
          // Who fails asks again at once, on whatever connection the client believes to be open.
          await sql`select ${"x".repeat(500)}::text`.then(
            () => {
              answered += 1;
            },
            () => {
              failed += 1;
            },
          );
          if (answered >= target) isOver = true;
        }
      };
      const talking = Array.from({ length: talkers }, talk);
      await sql`select 1`.catch(() => undefined);
      link.cut();
      // Without an answer to each, this would never be over.
      await Promise.all(talking);
    }
    assert.ok(failed > 0, "statements were under way when connections were reset");
    await sql.end({ timeout: 5 });
    await link.close();
  });
});
