/** What a store of traces promises; run over every one that there is. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { madeHead, madeSpan } from "#test/kit/traces/made_spans.ts";
import { openSpanStore } from "./open_span_store.ts";
import { type Span, type TraceSpans, traceLimits } from "./span.ts";
import type { SpanStore } from "./span_store.ts";

const page = { pageSize: 100, offset: 0 };
const at = (text: string) => new Date(`2026-11-22T${text}Z`);

describe("the span store in Postgres", () => {
  let database: TestDatabase;
  let store: SpanStore;
  const home = { organization_id: "", project_id: "" };
  let laterMs = 0;
  before(async () => {
    database = await createTestDatabase();
    store = openSpanStore({ sql: database.productSql, now: () => new Date(at("12:00:00.000").getTime() + laterMs) });
    const [row] = await database.sql<(typeof home)[]>`
      with made as (insert into organization (name) values ('Hotel Test') returning id)
      insert into project (organization_id, name, created_at, updated_at) select id, 'Desk', now(), now() from made
      returning organization_id, id as project_id`;
    Object.assign(home, row);
  });
  after(() => database.drop());

  const agentTrace = (changes: Parameters<typeof madeHead>[1] = {}): TraceSpans => ({
    trace: madeHead(home, changes),
    spans: [
      madeSpan({
        span_id: "00000000000000aa",
        kind: "agent",
        name: "invoke_agent desk",
        started_at: at("10:00:00.000"),
        duration_ms: 2500,
        prompt_tokens: 30,
        completion_tokens: 12,
        input: { question: "Is there a room?" },
        output: "Yes",
      }),
      llmSpan("00000000000000ab", 10, 5),
      llmSpan("00000000000000ac", 20, 7),
      madeSpan({
        span_id: "00000000000000ad",
        parent_span_id: "00000000000000aa",
        kind: "tool",
        name: "execute_tool find_room",
        tool_name: "find_room",
        status: "failed",
        status_message: "timed out",
        started_at: at("10:00:01.000"),
      }),
    ],
  });
  const llmSpan = (span_id: string, prompt_tokens: number, completion_tokens: number): Span =>
    madeSpan({
      span_id,
      parent_span_id: "00000000000000aa",
      kind: "llm",
      name: "chat small",
      model: "small",
      provider: "openai",
      started_at: at("10:00:00.500"),
      prompt_tokens,
      completion_tokens,
      cached_tokens: 2,
      cost_usd: 0.001,
    });
  const read = async ({ trace }: TraceSpans) => {
    const found = await store.readTrace({ projectId: trace.project_id }, trace.id);
    assert(found);
    return found;
  };

  it("makes a trace of its spans, and adds up what requests to models took, not what agents repeat of it", async () => {
    const given = agentTrace({ session_id: "s", user_id: "guest" });
    assert.equal(await store.writeSpans([given]), 4);
    const trace = await read(given);
    assert.deepEqual(
      { name: trace.name, status: trace.status, model: trace.model, provider: trace.provider, spans: trace.span_count },
      { name: "invoke_agent desk", status: "succeeded", model: "small", provider: "openai", spans: 4 },
    );
    assert.deepEqual(trace.usage, {
      prompt_tokens: 30,
      completion_tokens: 12,
      total_tokens: 42,
      cached_tokens: 4,
      cost_usd: 0.002,
    });
    assert.deepEqual([trace.duration_ms, trace.error_count, trace.user_id], [2500, 1, "guest"]);
    assert.deepEqual([trace.input, trace.output], [{ question: "Is there a room?" }, "Yes"]);
  });

  it("counts a span once, however often and in however many pieces it is sent, by many at once", async () => {
    const given = agentTrace({ session_id: "again" });
    const pieces = given.spans.map((span) => ({ trace: given.trace, spans: [span] }));
    const backwards = [...pieces].reverse();
    const written = await Promise.all([
      store.writeSpans([given]),
      store.writeSpans(pieces),
      ...backwards.map((piece) => store.writeSpans([piece])),
    ]);
    assert.equal(
      written.reduce((sum, count) => sum + count, 0),
      4,
    );
    const trace = await read(given);
    assert.deepEqual([trace.span_count, trace.usage.total_tokens, trace.usage.cost_usd], [4, 42, 0.002]);
    assert.deepEqual([trace.name, trace.status], ["invoke_agent desk", "succeeded"]);
    const { rows } = await store.listSessions({ projectId: home.project_id }, page);
    assert.equal(rows.find(({ id }) => id === "again")?.trace_count, 1);
  });

  it("shows a trace whose first span has not come as running", async () => {
    const given = agentTrace();
    await store.writeSpans([{ trace: given.trace, spans: given.spans.slice(1) }]);
    const trace = await read(given);
    assert.deepEqual([trace.status, trace.ended_at, trace.name], ["running", null, ""]);
  });

  it("keeps what it was given of a span", async () => {
    const given = agentTrace();
    const [root] = given.spans;
    assert(root);
    const full: Span = {
      ...root,
      attributes: { "gen_ai.operation.name": "invoke_agent", nested: { list: [1, "\u0000"] } },
      events: [{ name: "said", at: "2026-11-22T10:00:00.100Z", attributes: { text: "Yes" } }],
      links: [{ trace_id: given.trace.id, span_id: "00000000000000ff", attributes: {} }],
    };
    await store.writeSpans([{ trace: given.trace, spans: [full] }]);
    const { rows } = await store.readSpans(given.trace, page);
    assert.deepEqual(rows, [full]);
  });

  it("cuts what is too long, says so, and keeps text that a database would refuse", async () => {
    const given = agentTrace({ user_id: "gu\u0000est\ud800" });
    const [root] = given.spans;
    assert(root);
    const long = "\u0001ü".repeat(traceLimits.valueBytesMax);
    const spans = [{ ...root, name: "a\u0000b\udfff", input: long, attributes: { long } }];
    await store.writeSpans([{ trace: given.trace, spans }]);
    const [span] = (await store.readSpans(given.trace, page)).rows;
    assert(span);
    assert.deepEqual(span.truncated, ["input", "attributes"]);
    assert.ok(long.startsWith(span.input as string) && (span.input as string).length > 1000);
    assert.ok(Buffer.byteLength(JSON.stringify(span.input)) <= traceLimits.valueBytesMax);
    assert.deepEqual([span.name, span.attributes], ["ab\ufffd", {}]);
    assert.equal((await read(given)).user_id, "guest\ufffd");
  });

  it("rewrites a trace of ours to the same sums, however often, and keeps what others added", async () => {
    const given = agentTrace({ source: "run", source_id: "r", session_id: "mine" });
    const theirs = madeSpan({
      span_id: "00000000000000b0",
      parent_span_id: "00000000000000ad",
      kind: "llm",
      model: "theirs",
      started_at: at("10:00:01.005"),
      prompt_tokens: 100,
      completion_tokens: 1,
      cost_usd: 1,
    });
    const added = { trace: madeHead(home, { id: given.trace.id, source: "otlp" }), spans: [theirs] };
    await Promise.all([
      store.writeSpans([added]),
      ...[1, 2, 3].map(() => store.rewriteTraces([given])),
      store.writeSpans([added]),
    ]);
    await store.rewriteTraces([given]);
    const trace = await read(given);
    assert.deepEqual([trace.span_count, trace.usage.total_tokens, trace.usage.cost_usd], [5, 143, 1.002]);
    assert.deepEqual([trace.source, trace.source_id, trace.session_id], ["run", "r", "mine"]);
    assert.deepEqual([trace.name, trace.status, trace.model], ["invoke_agent desk", "succeeded", "small"]);
  });

  it("lists what a filter asks for, of this project alone, the newest first", async () => {
    const make = (time: string, changes: Parameters<typeof madeHead>[1]) => ({
      trace: madeHead(home, changes),
      spans: [madeSpan({ span_id: "00000000000000aa", started_at: at(time), model: null })],
    });
    const given = [
      make("08:00:00.000", { session_id: "listed", user_id: "one" }),
      make("08:00:01.000", { session_id: "listed", user_id: "two" }),
      make("08:00:02.000", { session_id: "listed", user_id: "one" }),
    ];
    await store.writeSpans(given);
    const ids = given.map(({ trace }) => trace.id);
    const list = async (filter: object) => {
      const found = await store.listTraces({ projectId: home.project_id, sessionId: "listed", ...filter }, page);
      assert.equal(found.totalCount, found.rows.length);
      return found.rows.map(({ id }) => ids.indexOf(id));
    };
    assert.deepEqual(await list({}), [2, 1, 0]);
    assert.deepEqual(await list({ userId: "one" }), [2, 0]);
    assert.deepEqual(await list({ status: "failed" }), []);
    assert.deepEqual(await list({ startedAt: [{ comparison: ">", at: at("08:00:00.000") }] }), [2, 1]);
    assert.deepEqual(await list({ projectId: crypto.randomUUID() }), []);
    const streamed: number[] = [];
    const filter = { projectId: home.project_id, sessionId: "listed" };
    for await (const rows of store.streamTraces(filter, 2, new AbortController().signal)) {
      streamed.push(...rows.map(({ id }) => ids.indexOf(id)));
    }
    assert.deepEqual(streamed, [2, 1]);
  });

  it("deletes traces with their spans, and a session with its last one", async () => {
    const given = [agentTrace({ session_id: "gone" }), agentTrace({ session_id: "gone" })] as const;
    await store.writeSpans(given);
    const sessions = async () => {
      const { rows } = await store.listSessions({ projectId: home.project_id }, page);
      return rows.filter(({ id }) => id === "gone").map(({ trace_count }) => trace_count);
    };
    const of = { projectId: home.project_id };
    assert.equal(await store.deleteTraces({ projectId: crypto.randomUUID() }, [given[0].trace.id]), 0);
    assert.equal(await store.deleteTraces(of, [given[0].trace.id]), 1);
    assert.deepEqual(await sessions(), [1]);
    assert.equal((await store.readSpans(given[0].trace, page)).totalCount, 0);
    assert.equal((await store.readSpans(given[1].trace, page)).totalCount, 4);
    assert.equal(await store.deleteTraces(of, [given[1].trace.id]), 1);
    assert.deepEqual(await sessions(), []);
  });

  it("drops what was kept as long as its project says, a day at a time, and makes the days to come", async () => {
    const { sql } = database;
    const given = agentTrace({ session_id: "kept" });
    await store.writeSpans([given]);
    await sql`update project set trace_retention_days = 7 where id = ${home.project_id}`;
    const days = async (count: number) => {
      laterMs = count * 86_400_000;
      await store.purge();
      return (
        await sql<
          { day: string }[]
        >`select relname as day from pg_class where relname like 'span_2026%' and relkind = 'r' order by 1`
      ).map(({ day }) => day);
    };
    assert.deepEqual(await days(6), ["span_20261122", "span_20261128", "span_20261129", "span_20261130"]);
    assert.ok(await store.readTrace({ projectId: home.project_id }, given.trace.id));
    assert.deepEqual(await days(8), [
      "span_20261128",
      "span_20261129",
      "span_20261130",
      "span_20261201",
      "span_20261202",
    ]);
    const filter = { projectId: home.project_id };
    assert.equal((await store.listTraces(filter, page)).totalCount, 0);
    assert.equal((await store.listSessions(filter, page)).totalCount, 0);
    // A span of a day that was dropped makes its day again.
    assert.equal(await store.writeSpans([agentTrace()]), 4);
  });
});
