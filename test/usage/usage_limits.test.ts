import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Price } from "#contracts/usage.ts";
import { emptyUsage } from "#contracts/voice_protocol.ts";
import { startTwin } from "#providers/openai/twin.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { answering, openAppClient } from "#test/kit/app_client.ts";
import { sendLimitMail } from "#usage/limit_notices.ts";

const agents = "/v1/agents/voice/agents";
const limits = "/v1/usage/limits";
const minute = 60_000;
const day = 24 * 60 * minute;

describe("ceilings of a day", () => {
  let api: ApiHarness;
  let twin: Awaited<ReturnType<typeof startTwin>>;
  let prices: { currency: string; prices: Price[] };
  before(async () => {
    twin = await startTwin();
    assert.ok(twin.access);
    const tokens = { per_million_input_tokens: 1e6, per_million_cached_tokens: 0, per_million_output_tokens: 1e6 };
    prices = {
      currency: "USD",
      prices: [{ stage: "llm", provider: "openai", base_url: twin.access.baseUrl, ...tokens }],
    };
    api = await openApiHarness(undefined, { allowPrivateAddresses: true, prices });
  });
  after(async () => {
    await api.close();
    await twin.close();
  });

  const as = (token: string) => (method: string, path: string, body?: unknown) =>
    api.call(method, path, { token, ...(body !== undefined && { body }) });
  const owner = (method: string, path: string, body?: unknown) => as(api.owner.token)(method, path, body);
  /** Each test has a day of its own, which begins two minutes after midnight. */
  const newDay = async () => {
    const at = api.now();
    const midnight = Date.parse(`${at.toISOString().slice(0, 10)}T00:00:00Z`) + day;
    api.advance(midnight - at.getTime() + 2 * minute);
    await api.sql`delete from usage_limit`;
  };
  const newAgent = async (): Promise<string> =>
    (await owner("POST", agents, { name: "Desk", project_id: api.projectId, config: {} })).body.data.id;
  const reserve = (agentId: string) => owner("POST", `${agents}/${agentId}/calls/websocket`, {});
  const open = (callId: string, gateway_id = "g1") =>
    api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id });
  const begin = async (agentId: string, gateway = "g1"): Promise<string> => {
    const reserved = await reserve(agentId);
    assert.equal(reserved.status, 201, JSON.stringify(reserved.body));
    assert.equal((await open(reserved.body.data.call_id, gateway)).status, 200);
    return reserved.body.data.call_id;
  };
  const usage = (known: number, amount: number | null = known) => ({
    ...emptyUsage(),
    cost: { currency: "USD", amount, known, unknown: amount === null ? ["tts x"] : [] },
  });
  const beat = (gateway_id: string, callIds: string[], cost?: number) =>
    api.internal("POST", "/internal/calls/heartbeat", {
      gateway_id,
      calls: callIds.map((call_id) => ({
        call_id,
        items: [],
        turns: [],
        ...(cost !== undefined && { usage: usage(cost) }),
      })),
    });
  const close = (gateway_id: string, callId: string, duration_ms: number, used = usage(0)) =>
    api.internal("POST", `/internal/calls/${callId}/close`, {
      gateway_id,
      end: { reason: "client_hangup", duration_ms },
      progress: { call_id: callId, items: [], turns: [], usage: used },
    });
  const today = () => api.now().toISOString().slice(0, 10);
  const sums = async () => {
    const { status, body } = await owner("GET", `/v1/usage?day=${today()}`);
    assert.equal(status, 200, JSON.stringify(body));
    return Object.fromEntries(
      // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
      body.data.map((row: any) => [row.agent_id ?? row.app_id ?? row.kind, [row.call_minutes, row.cost]]),
    );
  };
  const mails = async () => {
    const rows = await api.sql<{ payload: { to: string; day: string } }[]>`
      select payload from graphile_worker._private_jobs job
      join graphile_worker._private_tasks task on task.id = job.task_id
      where task.identifier = 'send_limit_mail'`;
    return rows.map(({ payload }) => payload).filter((mail) => mail.day === today());
  };

  it("refuse new calls with a code of its own when two calls on two gateways cross it at once, and one mail goes out", async () => {
    await newDay();
    const [one, two] = [await newAgent(), await newAgent()];
    const set = await owner("PUT", limits, { minutes_per_day: 2 });
    assert.deepEqual([set.status, set.body.data.kind, set.body.data.at_limit], [200, "organization", "finish"]);
    const [a, b] = [await begin(one, "g1"), await begin(two, "g2")];
    const reservedBefore = (await reserve(one)).body.data.call_id;
    api.advance(59_000);
    await Promise.all([beat("g1", [a]), beat("g2", [b])]);
    assert.equal((await reserve(one)).status, 201);
    assert.deepEqual(await mails(), []);
    api.advance(minute);
    const beats = await Promise.all([beat("g1", [a]), beat("g2", [b])]);
    for (const { body } of beats) assert.deepEqual(body, { closed: [] });

    const refused = await reserve(two);
    assert.deepEqual([refused.status, refused.body.error.code], [402, "usage_limit"]);
    assert.match(refused.body.error.details.organization, /below 2 minutes of calls a day/);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.deepEqual(
      [(await open(reservedBefore)).status, (await open(reservedBefore)).body.error.code],
      [402, "usage_limit"],
    );
    assert.equal((await mails()).length, 1);

    const ended = [close("g1", a, 180_000), close("g2", b, 120_500)];
    for (const { status } of await Promise.all(ended)) assert.equal(status, 204);
    assert.deepEqual(await sums(), { organization: [5.008, 0], [one]: [3, 0], [two]: [2.008, 0] });
    assert.equal((await mails()).length, 1);
    await api.advance(day);
    assert.equal((await reserve(two)).status, 201);
  });

  it("count each call once, whoever reports it how often and ends at the same time", async () => {
    await newDay();
    const agentId = await newAgent();
    const calls = await Promise.all(Array.from({ length: 6 }, (_, n) => begin(agentId, `g${n}`)));
    api.advance(10_000);
    await Promise.all(
      calls.flatMap((id, n) => [
        beat(`g${n}`, [id], 0.1),
        close(`g${n}`, id, 10_001, usage(0.25)),
        beat(`g${n}`, [id]),
      ]),
    );
    await Promise.all(calls.map((id, n) => close(`g${n}`, id, 10_001, usage(0.25))));
    assert.deepEqual(await sums(), { organization: [1, 1.5], [agentId]: [1, 1.5] });
    const [row] = await api.sql<{ ms: number }[]>`
      select call_ms::integer as ms from usage_day where subject_id = ${agentId}`;
    assert.equal(row?.ms, 60_006);
  });

  it("of an agent stand in its own way alone, and end what is under way where they say so", async () => {
    await newDay();
    const [limited, free] = [await newAgent(), await newAgent()];
    await owner("PUT", limits, { agent_id: limited, cost_per_day: 0.5, at_limit: "end" });
    const [a, b] = [await begin(limited), await begin(free)];
    assert.deepEqual((await beat("g1", [a, b], 0.4)).body, { closed: [] });
    assert.deepEqual((await beat("g1", [a, b], 0.5)).body, { closed: [], over_limit: [a] });
    assert.equal((await reserve(limited)).body.error.code, "usage_limit");
    assert.match((await reserve(limited)).body.error.details.agent_id, /a cost of 0.5/);
    assert.equal((await reserve(free)).status, 201);
    // A higher ceiling holds at once.
    await owner("PUT", limits, { agent_id: limited, cost_per_day: 5, at_limit: "end" });
    assert.equal((await reserve(limited)).status, 201);
    assert.deepEqual((await beat("g1", [a, b])).body, { closed: [] });
  });

  it("say so where a part of the cost is unknown, and count the rest", async () => {
    await newDay();
    const agentId = await newAgent();
    const id = await begin(agentId);
    await close("g1", id, 1000, usage(0.2, null));
    const { body } = await owner("GET", `/v1/usage?day=${today()}&agent_id=${agentId}`);
    assert.deepEqual([body.data[0].cost, body.data[0].has_unknown_cost, body.data[0].currency], [0.2, true, "USD"]);
  });

  it("are the administrators' to set, to see and to take away, and say what is wrong", async () => {
    await newDay();
    const agentId = await newAgent();
    const limit = (await owner("PUT", limits, { agent_id: agentId, minutes_per_day: 1 })).body.data;
    assert.deepEqual([limit.agent_id, limit.minutes_per_day, limit.cost_per_day], [agentId, 1, null]);
    assert.deepEqual((await owner("GET", limits)).body.data, [limit]);
    for (const [method, path, body] of [
      ["GET", "/v1/usage"],
      ["GET", limits],
      ["PUT", limits, { minutes_per_day: 1 }],
      ["DELETE", `${limits}/${limit.id}`],
    ] as const) {
      assert.equal((await as(api.member.token)(method, path, body)).status, 403, `${method} ${path}`);
    }
    const stranger = as(api.stranger.token);
    assert.equal((await stranger("PUT", limits, { agent_id: agentId, minutes_per_day: 1 })).status, 404);
    assert.equal((await stranger("DELETE", `${limits}/${limit.id}`)).status, 404);
    assert.deepEqual((await stranger("GET", limits)).body.data, []);
    assert.equal((await owner("PUT", limits, {})).status, 400);
    assert.equal((await owner("PUT", limits, { minutes_per_day: -1 })).status, 400);
    assert.equal((await owner("DELETE", `${limits}/${limit.id}`)).status, 200);
    assert.deepEqual((await owner("GET", limits)).body.data, []);
  });

  it("hold for runs, whose cost is in their usage and in the sums", async () => {
    await newDay();
    assert.ok(twin.access);
    twin.play("llm", "answers");
    const { secret, baseUrl } = twin.access;
    const made = await owner("POST", "/v1/connections", {
      name: "Models",
      project_id: api.projectId,
      provider: "openai",
      secret,
      base_url: baseUrl,
    });
    const client = await openAppClient(api);
    const [input, ask, output] = answering.nodes;
    const config = { ...ask?.config, model: "m-1", connection_id: made.body.data.id };
    const app = await client.deploy({ ...answering, nodes: [input, { ...ask, config }, output] });
    await owner("PUT", limits, { app_id: app.id, cost_per_day: 1, at_limit: "end" });
    const worker = await startTestWorker(api, { allowPrivateAddresses: true, prices });
    try {
      const start = () =>
        client.call(app.host, "POST", "/v1/runs", { body: { input: { question: "Late?" }, background: true } });
      const started = await start();
      assert.equal(started.status, 202, JSON.stringify(started.body));
      const run = await client.until(app.host, started.body.data.id, "succeeded");
      const { prompt_tokens, completion_tokens, cost } = run.usage;
      assert.deepEqual(cost, {
        currency: "USD",
        amount: prompt_tokens + completion_tokens,
        known: prompt_tokens + completion_tokens,
        unknown: [],
      });
      const [row] = await api.sql<{ cost: number }[]>`
        select cost::float8 from usage_day where subject_id = ${app.id}`;
      assert.equal(row?.cost, cost.known);
    } finally {
      await worker.close();
    }
    await api.sql`update usage_day set day = ${today()}::date where subject_id = ${app.id}`;
    const refused = await client.call(app.host, "POST", "/v1/runs", { body: { input: { question: "Late?" } } });
    assert.deepEqual([refused.status, refused.body.error.code], [402, "usage_limit"]);
  });

  it("are told of by a mail that names who reached what", async () => {
    const sent: { to: string; subject: string; text: string }[] = [];
    const mailer = { send: async (mail: (typeof sent)[number]) => void sent.push(mail) };
    const payload = {
      to: "desk@example.com",
      kind: "organization",
      subject_id: api.owner.organizationId,
      reached: "60 minutes of calls",
      at_limit: "end",
      day: "2026-11-22",
    };
    await sendLimitMail({ sql: api.sql, mailer: mailer as never }, payload);
    assert.equal(sent[0]?.to, "desk@example.com");
    assert.match(sent[0]?.subject ?? "", /Hotel Test/);
    assert.match(sent[0]?.text ?? "", /60 minutes of calls on 2026-11-22[\s\S]*Those under way end\./);
  });
});
