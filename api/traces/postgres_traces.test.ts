import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { madeHead, madeSpan } from "#test/kit/traces/made_spans.ts";
import { openSpanStore } from "./open_span_store.ts";
import { spansOf } from "./postgres_traces.ts";

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

it("the spans of a trace are looked for in the index of their own day, and of no other", async () => {
  const { sql, productSql } = database;
  const now = new Date("2026-11-22T12:00:00Z");
  const store = openSpanStore({ sql: productSql, now: () => now });
  const [home] = await sql<{ organization_id: string; project_id: string }[]>`
    with made as (insert into organization (name) values ('Hotel Test') returning id)
    insert into project (organization_id, name, created_at, updated_at) select id, 'Desk', now(), now() from made
    returning organization_id, id as project_id`;
  assert(home);
  const traces = Array.from({ length: 10 }, (_, daysAgo) => {
    const startedMs = now.getTime() - daysAgo * 86_400_000;
    const spans = Array.from({ length: 20 }, (_, n) =>
      madeSpan({ span_id: `00000000000000${10 + n}`, started_at: new Date(startedMs + n) }),
    );
    return { trace: madeHead(home), spans };
  });
  await store.writeSpans(traces);
  const trace = traces[3]?.trace ?? assert.fail();
  assert.equal((await store.readSpans(trace, { pageSize: 100, offset: 0 })).totalCount, 20);

  const plan = await sql.begin(async (transaction) => {
    await transaction`set local enable_seqscan = off`;
    return transaction<{ "QUERY PLAN": string }[]>`
      explain (analyze, costs off, timing off, summary off)
      select span_id from span where ${spansOf(transaction, trace)} order by started_at, span_id limit 20`;
  });
  const read = plan
    .map((line) => line["QUERY PLAN"])
    .filter((line) => / on span_\d{8}/.test(line) && !line.includes("never executed"));
  assert.equal(read.length, 1, plan.map((line) => line["QUERY PLAN"]).join("\n"));
  assert.match(read[0] ?? "", /Index.*Scan.* on span_20261119/);
});
