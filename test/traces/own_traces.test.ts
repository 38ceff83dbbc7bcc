/** Traces of our own runs and calls: made of the record, and in agreement with it. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RunEvent } from "#contracts/run_event.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import { knownRuns, runTraces } from "#runs/run_traces.ts";
import { type EngineHarness, openEngineHarness } from "#test/kit/runs/engine_harness.ts";
import { openSpanStore } from "#traces/open_span_store.ts";
import { type Span, traceLimits } from "#traces/span.ts";
import type { SpanStore } from "#traces/span_store.ts";
import { writeDueTraces } from "#traces/trace_due.ts";
import { sweepCalls } from "#voice/call_sweeper.ts";
import { callTraces, knownCalls } from "#voice/call_traces.ts";

const everything = { pageSize: traceLimits.spansMax, offset: 0 };

/** Calls a tool, is told that it failed, and answers; each request takes 7 + 2 tokens, 3 of them cached. */
function toolCaller(): LanguageModel {
  return {
    async *reply({ history }) {
      if (history.at(-1)?.role === "user") {
        yield { kind: "tool_call", id: "c1", name: "find_room", arguments: { day: "2026-12-24" } };
      } else yield { kind: "text", text: "No room" };
      yield { kind: "usage", prompt: 7, completion: 2, cached: 3 };
    },
    close() {},
  };
}

/** `in → ask (a model with a tool) → out`; the tool's server is nowhere. */
const desk = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    {
      id: "ask",
      name: "Ask the desk",
      type: "llm",
      config: {
        model: "desk-1",
        connection_id: crypto.randomUUID(),
        messages: [{ role: "user", template: "{{q}}" }],
        tools: [{ name: "find_room", description: "Finds a room", url: "https://192.0.2.1/rooms", method: "GET" }],
      },
      inputs: { q: "$.input.question" },
    },
    { id: "out", type: "output", inputs: { answer: "$.nodes.ask.output.text" } },
  ],
  edges: [
    { from: "in", to: "ask" },
    { from: "ask", to: "out" },
  ],
};

describe("a trace of our own", () => {
  let house: EngineHarness;
  let store: SpanStore;
  before(async () => {
    house = await openEngineHarness();
    store = openSpanStore({ sql: house.api.productSql, now: house.api.now });
  });
  after(() => house.close());

  const write = () => {
    const { productSql: sql, now } = house.api;
    const makeTraces = { run: runTraces(sql), call: callTraces(sql) };
    const stillThere = { run: knownRuns(sql), call: knownCalls(sql) };
    return writeDueTraces({
      sql,
      store,
      now,
      makeTraces,
      stillThere,
      onDropped: () => assert.fail("nothing is to be dropped"),
    });
  };
  const read = async (traceId: string) => {
    const trace = await store.readTrace({ projectId: house.api.projectId }, traceId);
    assert(trace, "no trace");
    const { rows: spans } = await store.readSpans({ project_id: trace.project_id, id: trace.id }, everything);
    return { trace, spans, ofKind: (kind: Span["kind"]) => spans.filter((span) => span.kind === kind) };
  };
  const nests = (spans: readonly Span[]) => {
    const ids = new Set(spans.map(({ span_id }) => span_id));
    assert.equal(ids.size, spans.length);
    assert.equal(spans.filter(({ parent_span_id }) => parent_span_id === null).length, 1);
    for (const { parent_span_id } of spans) assert.ok(parent_span_id === null || ids.has(parent_span_id));
  };

  it("of a run has its model, tokens, cost, tools and times as its events tell them", async () => {
    const engine = await house.start({ model: toolCaller() });
    const { host } = await house.client.deploy(desk);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
      body: { input: { question: "Any room?" }, background: true, session_id: "stay 7", user_id: "guest 9" },
    });
    await house.dispatch(engine);
    const run = await house.client.until(host, body.data.id, "succeeded");
    assert.equal(await write(), 1);
    const { trace, spans, ofKind } = await read(run.trace_id);
    nests(spans);

    assert.deepEqual(
      { source: trace.source, source_id: trace.source_id, status: trace.status, app_id: trace.app_id },
      { source: "run", source_id: run.id, status: "succeeded", app_id: run.app_id },
    );
    assert.deepEqual([trace.session_id, trace.user_id], ["stay 7", "guest 9"]);
    const caller = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331", attributes: {} };
    assert.deepEqual(ofKind("run")[0]?.links, [caller]);
    assert.deepEqual([trace.input, trace.output], [{ question: "Any room?" }, { answer: "No room" }]);
    assert.deepEqual([trace.model, trace.provider], ["desk-1", "test"]);
    const { cost_usd, ...tokens } = trace.usage;
    const { cost, ...used } = run.usage;
    assert.deepEqual(tokens, used);
    assert.deepEqual([cost_usd, cost.known], [0.5, 0.5]);
    assert.equal(trace.started_at.toISOString(), run.created_at);
    assert.equal(trace.ended_at?.toISOString(), run.ended_at);

    const rows = await house.api.sql<{ event: RunEvent }[]>`
      select body::json as event from run_event where run_id = ${run.id} order by id`;
    const events = rows.map(({ event }) => event);
    const timesOf = (type: RunEvent["type"]) =>
      events.flatMap((event) =>
        event.type === type && "duration_ms" in event.data ? [event.data.duration_ms as number] : [],
      );
    assert.deepEqual(
      ofKind("llm").map(({ duration_ms }) => duration_ms),
      timesOf("model.completed"),
    );
    assert.deepEqual(
      ofKind("llm").map(({ attributes }) => attributes["gen_ai.usage.input_tokens"]),
      [7, 7],
    );
    const [tool] = ofKind("tool");
    assert.deepEqual(
      { name: tool?.tool_name, input: tool?.input, status: tool?.status, took: [tool?.duration_ms] },
      { name: "find_room", input: { day: "2026-12-24" }, status: "failed", took: timesOf("tool.completed") },
    );
    const began = new Map(
      events.flatMap((event) =>
        event.type === "node.started" ? [[event.data.name ?? event.node_id, event.created_at] as const] : [],
      ),
    );
    assert.deepEqual(new Map(ofKind("node").map(({ name, started_at }) => [name, started_at.toISOString()])), began);
  });

  it("is the same however often and by however many it is made", async () => {
    const engine = await house.start({ model: toolCaller() });
    const { host } = await house.client.deploy(desk);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "Again?" }, background: true },
    });
    await house.dispatch(engine);
    const run = await house.client.until(host, body.data.id, "succeeded");
    await write();
    const first = await read(run.trace_id);
    for (let i = 0; i < 3; i += 1) {
      await house.api.sql`insert into trace_due (source, source_id) values ('run', ${run.id}), ('run', ${run.id})`;
    }
    await Promise.all([write(), write(), write()]);
    assert.deepEqual(await read(run.trace_id).then(({ trace, spans }) => ({ trace, spans })), {
      trace: first.trace,
      spans: first.spans,
    });
    assert.equal((await house.api.sql`select 1 from trace_due`).length, 0);
  });

  it("is written by another worker when the first one died over it, and of a run that nobody executed", async () => {
    const { host } = await house.client.deploy(desk);
    const { body } = await house.client.call(host, "POST", "/v1/runs", { body: { input: {}, background: true } });
    await house.client.call(host, "POST", `/v1/runs/${body.data.id}/cancel`, { body: { reason: "Nobody comes" } });
    const run = await house.client.until(host, body.data.id, "canceled");
    const until = new Date(house.api.now().getTime() + 60_000);
    await house.api.sql`update trace_due set leased_until = ${until}`;
    assert.equal(await write(), 0);
    house.api.advance(61_000);
    assert.equal(await write(), 1);
    const { trace, spans } = await read(run.trace_id);
    assert.deepEqual([trace.status, trace.span_count, spans.length], ["canceled", 1, 1]);
  });

  describe("of a call", () => {
    const agents = "/v1/agents/voice/agents";
    const requestOf = (id: number, stage: string, started_ms: number, changes: object) => ({
      request_id: `request_${id}`,
      turn_id: "turn_1",
      started_ms,
      first_ms: 40,
      duration_ms: 120.5,
      stage,
      provider: "openai",
      requests: 1,
      cost: 0.001,
      ...changes,
    });
    const progress = {
      items: [
        itemOf("i1", "user", "Do you have a room?", 1000, 2000),
        itemOf("i2", "agent", "Yes, number nine.", 2600, 4000),
      ],
      turns: [
        {
          turn_id: "turn_1",
          eos_wait_ms: 500,
          stt_final_ms: 100,
          llm_ttft_ms: 200,
          tts_ttfb_ms: 90,
          gateway_ms: 5,
          end_of_turn_to_audio_ms: 395,
          interrupted: false,
          preemptive_hit: false,
        },
      ],
      tools: [
        {
          tool_call_id: "t1",
          name: "find_room",
          source: "http",
          state: "completed",
          arguments: { day: "2026-12-24" },
          result: "nine",
          error: null,
          started_ms: 2200,
          duration_ms: 80,
        },
      ],
      requests: [
        requestOf(1, "stt", 2000, { model: "whisper", audio_ms: 1000 }),
        requestOf(2, "llm", 2100, { model: "gpt-4o-mini", prompt: 100, completion: 8, cached: 20 }),
        requestOf(3, "llm", 2300, { model: "gpt-4o-mini", prompt: 130, completion: 9, cached: 100 }),
        requestOf(4, "tts", 2500, { model: "tts-1", characters: 17, cost: null }),
      ],
      events: [{ event_id: "e1", at_ms: 2150, type: "warning", data: { code: "provider_retried" } }],
      usage: {
        input_audio_ms: 5000,
        output_audio_ms: 1400,
        llm: { prompt: 230, completion: 17, cached: 120 },
        tts_characters: 17,
        stt_ms: 1000,
        tool_calls: 1,
        cost: { currency: "USD", amount: null, known: 0.003, unknown: ["tts openai tts-1"] },
      },
    };
    function itemOf(item_id: string, role: string, text: string, start_ms: number, end_ms: number) {
      return { item_id, turn_id: "turn_1", role, text, heard_text: text, interrupted: false, start_ms, end_ms };
    }

    async function begin(): Promise<string> {
      const { api } = house;
      const agent = await api.call("POST", agents, {
        token: api.owner.token,
        body: { name: "Night desk", project_id: api.projectId, config: { llm: { provider: "echo" } } },
      });
      const reserved = await api.call("POST", `${agents}/${agent.body.data.id}/calls/websocket`, {
        token: api.owner.token,
        body: { metadata: { user_id: "guest 9", session_id: "stay 7" } },
      });
      const id: string = reserved.body.data.call_id;
      assert.equal((await api.internal("POST", `/internal/calls/${id}/open`, { gateway_id: "g1" })).status, 200);
      return id;
    }
    const close = (id: string) =>
      house.api.internal("POST", `/internal/calls/${id}/close`, {
        gateway_id: "g1",
        end: { reason: "client_hangup", duration_ms: 6000 },
        progress: { call_id: id, ...progress },
      });

    it("has its models, tokens, cost, tools and times as the record tells them", async () => {
      const id = await begin();
      assert.equal((await close(id)).status, 204);
      assert.equal(await write(), 1);
      const { trace, spans, ofKind } = await read(id);
      nests(spans);
      const { body } = await house.api.call("GET", `/v1/agents/voice/calls/${id}`, { token: house.api.owner.token });
      const record = body.data;
      assert.deepEqual(record.requests, progress.requests);
      assert.equal(trace.started_at.toISOString(), record.started_at);
      assert.deepEqual([trace.duration_ms, trace.source_id, trace.name], [6000, id, "invoke_agent Night desk"]);
      assert.deepEqual([trace.user_id, trace.session_id], ["guest 9", "stay 7"]);
      assert.deepEqual([trace.input, trace.output], ["Do you have a room?", "Yes, number nine."]);
      assert.deepEqual(trace.usage, {
        prompt_tokens: record.usage.llm.prompt,
        completion_tokens: record.usage.llm.completion,
        total_tokens: 247,
        cached_tokens: record.usage.llm.cached,
        cost_usd: record.usage.cost.known,
      });
      const offsets = ({ started_at, duration_ms }: Span) => [
        started_at.getTime() - trace.started_at.getTime(),
        duration_ms,
      ];
      assert.deepEqual(ofKind("llm").map(offsets), [
        [2100, 120.5],
        [2300, 120.5],
      ]);
      assert.deepEqual(ofKind("turn").map(offsets), [[1000, 3000]]);
      assert.equal(ofKind("turn")[0]?.attributes["frontdesk.turn.end_of_turn_to_audio_ms"], 395);
      const [tool] = ofKind("tool");
      assert.deepEqual([tool?.tool_name, tool?.output, tool?.status], ["find_room", "nine", "succeeded"]);
      assert.equal(tool?.parent_span_id, ofKind("turn")[0]?.span_id);
      assert.deepEqual(
        ofKind("call")[0]?.events.map(({ name, attributes }) => ({ name, attributes })),
        [{ name: "warning", attributes: { code: "provider_retried" } }],
      );
    });

    it("is written of one whose gateway was lost, and again when its gateway comes back with the rest", async () => {
      const id = await begin();
      house.api.advance(10 * 60_000);
      await sweepCalls({ sql: house.api.sql, bus: house.api.bus, now: house.api.now });
      assert.equal(await write(), 1);
      const before = await read(id);
      assert.deepEqual([before.trace.status, before.spans.length], ["failed", 1]);
      assert.equal(before.spans[0]?.attributes["error.type"], "gateway_lost");
      await house.api.internal("POST", "/internal/calls/heartbeat", {
        gateway_id: "g1",
        calls: [{ call_id: id, ...progress }],
      });
      assert.equal(await write(), 1);
      const after = await read(id);
      assert.deepEqual([after.trace.usage.total_tokens, after.ofKind("tool").length], [247, 1]);
      assert.equal(after.ofKind("call")[0]?.duration_ms, before.trace.duration_ms);
      assert.equal(after.trace.duration_ms, 4000, "to the end of what was heard of it at last");
    });
  });
});
