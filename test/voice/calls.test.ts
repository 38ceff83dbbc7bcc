import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { topics } from "#bus/bus.ts";
import { heartbeatLostS } from "#contracts/internal_calls.ts";
import { sha256Hex } from "#identity/secret.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { sweepCalls } from "#voice/call_sweeper.ts";

const agents = "/v1/agents/voice/agents";
const calls = "/v1/agents/voice/calls";
const nowhere = "00000000-0000-4000-8000-000000000000";

const usage = {
  input_audio_ms: 1000,
  output_audio_ms: 500,
  llm: { prompt: 1, completion: 2, cached: 0 },
  tts_characters: 12,
  stt_ms: 7,
  tool_calls: 0,
};
const item = (item_id: string, start_ms: number, text: string) => ({
  item_id,
  turn_id: "t1",
  role: "agent",
  text,
  heard_text: text.slice(0, 5),
  interrupted: true,
  backchannel: false,
  ...(start_ms === 0 && { heard_basis: "delivery" }),
  start_ms,
  end_ms: start_ms + 400,
});
const tool = (tool_call_id: string, result: string | null) => ({
  tool_call_id,
  name: "find_room",
  source: "http",
  state: result === null ? "running" : "completed",
  arguments: { day: "2026-12-24" },
  result,
  error: null,
  started_ms: 900,
  duration_ms: result === null ? null : 80,
});
const event = (event_id: string) => ({
  event_id,
  at_ms: 1200,
  type: "error",
  data: { code: "llm_failed", message: "It is away", fatal: false },
});
const turn = (turn_id: string, gateway_ms: number) => ({
  turn_id,
  eos_wait_ms: 500,
  stt_final_ms: 1,
  llm_ttft_ms: 2,
  tts_ttfb_ms: 3,
  gateway_ms,
  end_of_turn_to_audio_ms: 9.5,
  interrupted: false,
  preemptive_hit: false,
});

describe("calls", () => {
  let api: ApiHarness;
  let agentId: string;
  before(async () => {
    api = await openApiHarness();
    agentId = await createAgent();
  });
  after(() => api.close());

  const asOwner = (body?: unknown) => ({ token: api.owner.token, ...(body !== undefined && { body }) });
  async function createAgent(config: object = {}, more: object = {}): Promise<string> {
    const body = { name: "Desk", project_id: api.projectId, config, ...more };
    const created = await api.call("POST", agents, asOwner(body));
    assert.equal(created.status, 201, JSON.stringify(created.body));
    return created.body.data.id;
  }
  const reserve = (body: unknown = {}, id = agentId) =>
    api.call("POST", `${agents}/${id}/calls/websocket`, asOwner(body));
  const reserveId = async (body: unknown = {}, id = agentId): Promise<string> => {
    const reserved = await reserve(body, id);
    assert.equal(reserved.status, 201, JSON.stringify(reserved.body));
    return reserved.body.data.call_id;
  };
  const open = (callId: string, gateway_id = "g1") =>
    api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id });
  const openId = async (gatewayId?: string): Promise<string> => {
    const callId = await reserveId();
    assert.equal((await open(callId, gatewayId)).status, 200);
    return callId;
  };
  const heartbeat = (reports: object[], gateway_id = "g1") =>
    api.internal("POST", "/internal/calls/heartbeat", { gateway_id, calls: reports });
  const close = (call_id: string, end: object, progress: object = {}, gateway_id = "g1") =>
    api.internal("POST", `/internal/calls/${call_id}/close`, {
      gateway_id,
      end,
      progress: { call_id, items: [], turns: [], ...progress },
    });
  const read = async (callId: string) => (await api.call("GET", `${calls}/${callId}`, asOwner())).body.data;
  const quiet = (call_id: string) => ({ call_id, items: [], turns: [] });
  const sweep = () => sweepCalls({ sql: api.sql, bus: api.bus, now: api.now });

  describe("reservations", () => {
    it("answer what the caller needs, in the protocol's defaults, and tell the bus", async () => {
      const { status, body } = await reserve();
      assert.equal(status, 201);
      const { call_id, websocket_url, expires_at, ...rest } = body.data;
      const pcm = { encoding: "pcm_s16le", sample_rate: 16000, container: "raw" };
      assert.deepEqual(rest, {
        audio_format: pcm,
        output_audio_format: pcm,
        protocol: "voice.v1",
        resume_window_s: 30,
      });
      const [, secret = ""] =
        new RegExp(`^ws://desk\\.example:8080/v1/voice/calls/${call_id}/([\\w-]{43})$`).exec(websocket_url) ?? [];
      const ttlS = (Date.parse(expires_at) - api.now().getTime()) / 1000;
      assert.ok(ttlS > 115 && ttlS <= 120);
      const known = await api.bus.peekReservation(call_id);
      assert.equal(known?.reservation.secret_sha256, sha256Hex(secret));
      assert.equal(JSON.stringify(await api.sql`select * from call where id = ${call_id}`).includes(secret), false);
      assert.equal(JSON.stringify(await read(call_id)).includes(secret), false);
    });

    it("take an empty body, aliases, and another format out than in", async () => {
      const empty = await api.call("POST", `${agents}/${agentId}/calls/websocket`, asOwner());
      assert.equal(empty.status, 201);
      const { body } = await reserve({
        audio_format: { encoding: "pcmu", container: "none" },
        output_audio_format: { encoding: "opus" },
      });
      assert.deepEqual(body.data.audio_format, { encoding: "mulaw", sample_rate: 8000, container: "raw" });
      assert.deepEqual(body.data.output_audio_format, { encoding: "opus", sample_rate: 48000, container: "raw" });
    });

    const bad: [field: string, body: unknown][] = [
      ["surprise", { surprise: 1 }],
      ["protocol", { protocol: "twilio" }],
      ["protocol", { protocol: "morse" }],
      ["audio_format.encoding", { audio_format: { encoding: "mp3" } }],
      ["audio_format.sample_rate", { audio_format: { encoding: "mulaw", sample_rate: 16000 } }],
      ["output_audio_format.container", { output_audio_format: { container: "ogg" } }],
      ["client_buffer_ms", { client_buffer_ms: 59 }],
      ["client_buffer_ms", { client_buffer_ms: 30_001 }],
      ["variables.name", { variables: { name: { first: "x" } } }],
      ["variables.a b", { variables: { "a b": "x" } }],
      ["metadata", { metadata: { note: "x".repeat(17_000) } }],
      ["metadata", { metadata: "text" }],
      ["initial_messages.0.role", { initial_messages: [{ role: "system", text: "x" }] }],
      ["initial_messages", { initial_messages: Array(101).fill({ role: "user", text: "x" }) }],
      ["config_overrides.surprise", { config_overrides: { surprise: 1 } }],
      ["config_overrides.mode", { config_overrides: { mode: "realtime" } }],
      ["config_overrides.advanced.idle_timeout_s", { config_overrides: { advanced: { idle_timeout_s: 3 } } }],
      ["config_overrides.llm.base_url", { config_overrides: { llm: { base_url: "https://x.example" } } }],
      ["config_overrides.llm.connection_id", { config_overrides: { llm: { connection_id: nowhere } } }],
      ["config_overrides.tools.0.url", { config_overrides: { tools: [{ name: "a", url: "https://x.example" }] } }],
      ["config_overrides.mcp_servers", { config_overrides: { mcp_servers: [] } }],
      [
        "config_overrides.advanced.background_sound",
        { config_overrides: { advanced: { background_sound: "https://x.example/a" } } },
      ],
      ["config_overrides.tts.options.surprise", { config_overrides: { tts: { options: { surprise: 1 } } } }],
    ];
    for (const [field, body] of bad) {
      it(`refuse ${JSON.stringify(body).slice(0, 70)} by the path ${field}`, async () => {
        const answer = await reserve(body);
        assert.equal(answer.status, 400);
        assert.ok(field in answer.body.error.details, JSON.stringify(answer.body));
      });
    }

    it("are bounded for each organization, with the time until the next one expires", async () => {
      const id = await createAgent();
      await api.sql`
        insert into call (id, organization_id, project_id, agent_id, state, secret_sha256, protocol, input_format,
          output_format, client_buffer_ms, variables, metadata, config_overrides, initial_messages, created_at, expires_at)
        select gen_random_uuid(), ${api.owner.organizationId}, ${api.projectId}, ${id}, 'reserved', '', 'voice.v1', '{}',
          '{}', 400, '{}', '{}', '{}', '[]', ${api.now()}, ${new Date(api.now().getTime() + 90_000)}
        from generate_series(1, 10000)`;
      const refused = await reserve({}, id);
      assert.deepEqual([refused.status, refused.body.error.code], [429, "too_many_requests"]);
      const retryAfterS = Number(refused.headers.get("retry-after"));
      assert.ok(retryAfterS > 0 && retryAfterS <= 90, String(retryAfterS));
      await api.sql`delete from call where agent_id = ${id}`;
      assert.equal((await reserve({}, id)).status, 201);
    });
  });

  describe("the seam to the gateway", () => {
    it("answers the internal secret alone", async () => {
      const callId = await reserveId();
      for (const token of [undefined, api.owner.token, "wrong"]) {
        const answer = await api.call("POST", `/internal/calls/${callId}/open`, {
          ...(token && { token }),
          body: { gateway_id: "g1" },
        });
        assert.equal(answer.status, 401);
      }
      assert.equal((await open(callId)).status, 200);
    });

    it("opens a reservation once, however many gateways race for it", async () => {
      const callId = await reserveId();
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => open(callId, `g${index}`)));
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, ...Array(19).fill(409)]);
      assert.equal((await open(callId)).status, 409);
    });

    it("gives the configuration as the agent stands at connect, overrides merged and variables filled in", async () => {
      const id = await createAgent({ instructions: "old" }, { allowed_origins: ["https://a.example"] });
      const callId = await reserveId(
        {
          variables: { guest: "Ada {{room}}", room: 12, vip: true },
          config_overrides: { advanced: { eos_silence_ms: 200 }, llm: { temperature: 1 } },
          initial_messages: [{ role: "user", text: "Hi" }],
          client_buffer_ms: 1000,
        },
        id,
      );
      const config = {
        instructions: "Guest {{ guest }}, room {{room}}, {{vip}}, {{unknown}}.",
        welcome_message: "Hello {{guest}}",
        llm: { provider: "scripted", options: { replies: ["a"] } },
        advanced: { idle_timeout_s: 30 },
      };
      await api.call("PATCH", `${agents}/${id}`, asOwner({ config }));
      const before = await api.internal("GET", `/internal/calls/${callId}`);
      assert.deepEqual([before.body.state, before.body.allowed_origins], ["reserved", ["https://a.example"]]);
      const { status, body } = await open(callId);
      assert.equal(status, 200);
      assert.equal(body.config.instructions, "Guest Ada {{room}}, room 12, true, .");
      assert.equal(body.config.welcome_message, "Hello Ada {{room}}");
      assert.deepEqual(body.config.llm, {
        provider: "scripted",
        language: "en",
        temperature: 1,
        options: { replies: ["a"] },
      });
      assert.equal(body.config.advanced.eos_silence_ms, 200);
      assert.equal(body.config.advanced.idle_timeout_s, 30);
      assert.equal(body.config.advanced.max_call_duration_s, 1800);
      assert.deepEqual([body.agent_id, body.organization_id], [id, api.owner.organizationId]);
      assert.deepEqual([body.client_buffer_ms, body.initial_messages], [1000, [{ role: "user", text: "Hi" }]]);
      await api.call("PATCH", `${agents}/${id}`, asOwner({ config: { instructions: "later" } }));
      assert.equal((await api.internal("GET", `/internal/calls/${callId}`)).body.state, "in_progress");
    });

    it("tells an unknown, an expired and an archived agent's reservation apart", async () => {
      assert.equal((await open(nowhere)).status, 404);
      assert.equal((await api.internal("GET", `/internal/calls/${nowhere}`)).status, 404);
      const id = await createAgent();
      const archived = await reserveId({}, id);
      await api.call("DELETE", `${agents}/${id}`, asOwner());
      const gone = await open(archived);
      assert.deepEqual([gone.status, JSON.stringify(gone.body).includes("expired")], [410, false]);
      const late = await reserveId();
      api.advance(120_001);
      const expired = await open(late);
      assert.deepEqual([expired.status, JSON.stringify(expired.body).includes("expired")], [410, true]);
      assert.equal((await api.internal("GET", `/internal/calls/${late}`)).body.state, "expired");
      assert.equal((await read(late)).state, "expired");
    });

    it("keeps what heartbeats report, a later report of an item replacing the earlier one", async () => {
      const [first, second] = [await openId(), await openId()];
      const report = {
        call_id: first,
        items: [item("i2", 900, "Second thing"), item("i1", 100, "First")],
        turns: [turn("t1", 1)],
        usage,
      };
      assert.deepEqual((await heartbeat([report, quiet(second)])).body, { closed: [] });
      await heartbeat([
        {
          call_id: first,
          items: [item("i1", 100, "First, longer")],
          turns: [turn("t1", 2), turn("t2", 3)],
          events: [event("event_1")],
          tools: [tool("c1", null), tool("c2", null)],
        },
      ]);
      const news = { events: [event("event_1"), event("event_2")], tools: [tool("c1", "seven")] };
      await heartbeat([{ ...quiet(first), ...news }]);
      const record = await read(first);
      assert.deepEqual(record.transcript, [item("i1", 100, "First, longer"), item("i2", 900, "Second thing")]);
      assert.deepEqual(record.turns, [turn("t1", 2), turn("t2", 3)]);
      assert.deepEqual(record.events, [event("event_1"), event("event_2")]);
      assert.deepEqual(record.tools, [tool("c1", "seven"), tool("c2", null)]);
      assert.deepEqual(record.usage, usage);
      assert.equal(record.state, "in_progress");
    });

    it("keeps text that Postgres cannot hold, mended, and drops one odd report without the others", async () => {
      const [first, second] = [await openId(), await openId()];
      const odd = { call_id: second, items: [{ item_id: 7 }], turns: [] };
      const reply = await heartbeat([{ call_id: first, items: [item("i1", 0, "a\0b\ud800c")], turns: [] }, odd]);
      assert.deepEqual([reply.status, reply.body], [200, { closed: [] }]);
      assert.equal((await read(first)).transcript[0].text, "a\ufffdb\ufffdc");
      assert.deepEqual((await read(second)).transcript, []);
    });

    it("takes no report of another gateway's call", async () => {
      const callId = await openId("g1");
      const reply = await heartbeat([{ ...quiet(callId), items: [item("i1", 0, "forged")] }], "g2");
      assert.deepEqual(reply.body, { closed: [callId] });
      await close(callId, { reason: "error", duration_ms: 1 }, {}, "g2");
      const record = await read(callId);
      assert.deepEqual([record.state, record.transcript], ["in_progress", []]);
    });

    it("closes once: the first close wins, a late one only completes the transcript", async () => {
      const callId = await openId();
      const ends = await Promise.all(
        ["client_hangup", "agent_hangup"].map((reason) => close(callId, { reason, duration_ms: 1234.5 }, { usage })),
      );
      assert.deepEqual(
        ends.map((end) => end.status),
        [204, 204],
      );
      const { end_reason: winner } = await read(callId);
      assert.equal(
        (await close(callId, { reason: "error", duration_ms: 1 }, { items: [item("i9", 5, "Late words")] })).status,
        204,
      );
      const record = await read(callId);
      assert.deepEqual([record.state, record.end_reason, record.duration_ms], ["ended", winner, 1234.5]);
      assert.equal(record.transcript.length, 1);
      assert.ok(record.ended_at);
      assert.deepEqual((await heartbeat([quiet(callId)])).body, { closed: [callId] });
      assert.equal((await close(nowhere, { reason: "error", duration_ms: 1 })).status, 404);
    });

    it("takes overlapping heartbeats of many calls without a deadlock", async () => {
      const ids = await Promise.all(Array.from({ length: 12 }, () => openId()));
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, index) => heartbeat((index % 2 ? ids : [...ids].reverse()).map(quiet))),
      );
      for (const reply of replies) assert.deepEqual([reply.status, reply.body], [200, { closed: [] }]);
    });
  });

  describe("the sweeper", () => {
    const lost = async (callId: string) => {
      const { state, end_reason, error_code } = await read(callId);
      return { state, end_reason, error_code };
    };
    const closedAsLost = { state: "ended", end_reason: "error", error_code: "gateway_lost" };
    const goesOn = { state: "in_progress", end_reason: null, error_code: null };
    const alive = (gatewayId: string) =>
      api.bus.reportCapacity(gatewayId, { slots: 1, inUse: 1, draining: false }, 60_000);

    it("closes the calls of a gateway that is gone, with the words and the time that were reported", async () => {
      const callId = await openId("dead");
      api.advance(4000);
      await heartbeat([{ ...quiet(callId), items: [item("i1", 0, "Still here")] }], "dead");
      api.advance(heartbeatLostS * 1000 + 1);
      await sweep();
      const record = await read(callId);
      assert.deepEqual(await lost(callId), closedAsLost);
      assert.ok(record.duration_ms >= 4000 && record.duration_ms < 10_000, String(record.duration_ms));
      assert.equal(record.transcript.length, 1);
      const [counted] = await api.sql<{ ms: number }[]>`select counted_ms::float8 as ms from call where id = ${callId}`;
      assert.equal(counted?.ms, record.duration_ms);
    });

    it("leaves calls alone whose gateway lives while the api hears nothing", async () => {
      const callId = await openId("cut-off");
      await alive("cut-off");
      await heartbeat([quiet(callId)], "cut-off");
      api.advance(heartbeatLostS * 1000 + 1);
      await sweep();
      assert.deepEqual(await lost(callId), goesOn);
      assert.deepEqual((await heartbeat([quiet(callId)], "cut-off")).body, { closed: [] });
      api.advance(10 * 60_000);
      await sweep();
      assert.deepEqual(await lost(callId), closedAsLost);
    });

    it("closes a call that a living gateway reports no more", async () => {
      const [kept, forgotten] = [await openId("forgetful"), await openId("forgetful")];
      await alive("forgetful");
      await heartbeat([quiet(kept)], "forgetful");
      for (let round = 0; round < 4; round++) {
        api.advance(5000);
        await heartbeat([quiet(kept)], "forgetful");
      }
      await Promise.all([sweep(), sweep(), sweep()]);
      assert.deepEqual([await lost(kept), await lost(forgotten)], [goesOn, closedAsLost]);
    });

    it("expires reservations that ran out", async () => {
      const callId = await reserveId();
      api.advance(120_001);
      assert.ok((await sweep()).expired >= 1);
      const [row] = await api.sql`select state from call where id = ${callId}`;
      assert.equal(row?.state, "expired");
    });
  });

  describe("records", () => {
    it("are listed with filters, sorting and pages", async () => {
      const id = await createAgent();
      const [first, second, third] = [await reserveId({}, id), await reserveId({}, id), await reserveId({}, id)];
      await open(first);
      const list = async (query: string) => {
        const answer = await api.call("GET", `${calls}?agent_id=${id}&${query}`, asOwner());
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        return answer.body.data.map((call: { id: string }) => call.id);
      };
      assert.deepEqual(await list("sort=created_at"), [first, second, third]);
      assert.deepEqual(await list(""), [third, second, first]);
      assert.deepEqual(await list("state=in_progress"), [first]);
      assert.deepEqual(await list("state=reserved&sort=created_at"), [second, third]);
      assert.deepEqual(await list(`project_id=${nowhere}`), []);
      const at = (offsetMs: number) => encodeURIComponent(new Date(api.now().getTime() + offsetMs).toISOString());
      assert.deepEqual(await list(`started_at:gte=${at(-60_000)}`), [first]);
      assert.deepEqual(await list(`started_at:gte=${at(60_000)}`), []);
      assert.deepEqual(await list(`started_at:gt=${at(-60_000)}&started_at:lte=${at(60_000)}`), [first]);
      api.advance(120_001);
      assert.deepEqual(await list("state=expired&sort=created_at"), [second, third]);
      for (const query of [
        `started_at:gt=${at(0)}&started_at:gte=${at(0)}`,
        "started_at:gte=yesterday",
        "sort=metadata",
        "state=lost",
      ]) {
        assert.equal((await api.call("GET", `${calls}?${query}`, asOwner())).status, 400, query);
      }
    });

    it("are not for strangers, nor for members outside the project", async () => {
      const callId = await openId();
      const attempts: [string, string, unknown?][] = [
        ["GET", `${calls}/${callId}`],
        ["POST", `${calls}/${callId}/control`, { type: "interrupt" }],
      ];
      for (const [method, path, body] of attempts) {
        const request = (token: string) => api.call(method, path, { token, ...(body !== undefined && { body }) });
        assert.equal((await request(api.stranger.token)).status, 404);
        assert.equal((await request(api.member.token)).status, 403);
      }
      assert.deepEqual((await api.call("GET", calls, { token: api.stranger.token })).body.data, []);
      assert.deepEqual((await api.call("GET", calls, { token: api.member.token })).body.data, []);
    });

    it("keep the reservation's metadata", async () => {
      const metadata = { booking: 42, tags: ["a"] };
      assert.deepEqual((await read(await reserveId({ metadata }))).metadata, metadata);
    });
  });

  describe("control", () => {
    it("hands a client message to the gateway that holds the call", async () => {
      const callId = await openId("g-control");
      const heard: string[] = [];
      const unsubscribe = await api.bus.subscribe(topics.callControl("g-control"), (payload) => heard.push(payload));
      const message = { type: "say", text: "Hello", behavior: "interrupt" };
      const answer = await api.call("POST", `${calls}/${callId}/control`, asOwner(message));
      assert.deepEqual([answer.status, answer.body], [204, ""]);
      assert.deepEqual(
        heard.map((payload) => JSON.parse(payload)),
        [{ call_id: callId, message }],
      );
      await unsubscribe();
    });

    it("refuses what is no client message, and calls that are not active", async () => {
      const control = (callId: string, body: object) => api.call("POST", `${calls}/${callId}/control`, asOwner(body));
      const callId = await openId();
      assert.ok("type" in (await control(callId, { type: "call_ended" })).body.error.details);
      assert.ok("text" in (await control(callId, { type: "say" })).body.error.details);
      assert.ok("digit" in (await control(callId, { type: "dtmf", digit: "x" })).body.error.details);
      assert.equal((await control(await reserveId(), { type: "interrupt" })).status, 409);
      await close(callId, { reason: "client_hangup", duration_ms: 1 });
      const refused = await control(callId, { type: "interrupt" });
      assert.deepEqual([refused.status, refused.body.error.code], [409, "conflict"]);
    });
  });
});
