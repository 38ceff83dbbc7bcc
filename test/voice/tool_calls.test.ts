/** Tools in calls, through the whole house: saved over the api, run by a gateway's threads, kept in the record. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { cancelRunsOfEndedCalls } from "#api/app_tools.ts";
import type { RunningWorker } from "#api/worker.ts";
import { startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "#test/kit/app_client.ts";
import type { CallClient } from "#test/kit/gateway_fixture.ts";
import { openVendorHouse, type VendorHouse } from "#test/kit/vendor_house.ts";

describe("tools in a call", () => {
  let house: VendorHouse;
  let url = "";
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => answer(request, response));
  let worker: RunningWorker;
  let apps: AppClient;
  before(async () => {
    house = await openVendorHouse();
    worker = await startTestWorker(house.api);
    apps = await openAppClient(house.api);
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await worker.close();
    await house.stop();
  });

  /** An agent that calls these tools in its first turn. */
  const agentOf = (config: object, ...calls: { name: string; arguments?: object }[]) =>
    house.agent({
      llm: {
        provider: "scripted",
        options: { tool_calls: calls.map((call) => ({ turn: 1, ...call })), replies: ["Here you are."] },
      },
      ...config,
    });

  /** Asks, waits for the answer, and hangs up. @returns the call's record */
  async function talk(agentId: string) {
    const caller = await house.dial(agentId);
    caller.send({ type: "start", capabilities: { text_only: true } });
    caller.send({ type: "user_message", text: "Is there a room?" });
    await caller.until(() =>
      caller.messages.some((one) => one.type === "transcript" && one.role === "agent" && one.final),
    );
    return { caller, record: await recordOf(caller) };
  }

  async function recordOf(caller: CallClient) {
    const { call_id } = await caller.message("call_started");
    caller.send({ type: "hang_up" });
    await house.reports.closeOf(call_id);
    return (await house.call("GET", `/v1/agents/voice/calls/${call_id}`)).body.data;
  }

  it("are sent the secret of their connection, the new one from the next call on, and no one else is shown it", async () => {
    const secrets = ["secret-of-yesterday-1", "secret-of-today-2"];
    const shown: (string | undefined)[] = [];
    answer = (request, response) => {
      shown.push(request.headers.authorization);
      response.end(`seven rooms for ${request.headers.authorization}`);
    };
    const connection_id = await house.connect("bearer", { secret: secrets[0] as string, baseUrl: url });
    const agentId = await agentOf({ tools: [{ name: "find_room", url, connection_id }] }, { name: "find_room" });
    const before = await talk(agentId);
    await house.call("PATCH", `/v1/connections/${connection_id}`, { secret: secrets[1] });
    const next = await talk(agentId);
    assert.deepEqual(
      shown,
      secrets.map((secret) => `Bearer ${secret}`),
    );
    const told = JSON.stringify([before.caller.messages, before.record, next.caller.messages, next.record]);
    for (const secret of secrets) assert.ok(!told.includes(secret));
    const [kept] = next.record.tools;
    assert.deepEqual(
      { ...kept, started_ms: 0, duration_ms: 0, tool_call_id: "" },
      {
        tool_call_id: "",
        name: "find_room",
        source: "http",
        state: "completed",
        arguments: {},
        result: "seven rooms for ********",
        error: null,
        started_ms: 0,
        duration_ms: 0,
      },
    );
    await house.call("DELETE", `/v1/connections/${connection_id}`);
    const gone = await talk(agentId);
    assert.equal(shown.length, 2, "without its credential the host is not asked");
    const events = gone.caller.messages.flatMap((one) => (one.type === "tool_event" ? [one] : []));
    assert.equal(events.at(-1)?.error, "The connection that has its credential is gone");
  });

  it("may be apps: a run is started once, followed, and kept with the call", async () => {
    const app = await apps.deploy(answering);
    const tool = { app_id: app.id, name: "answer", long_running: false };
    const agentId = await agentOf({ app_tools: [tool] }, { name: "answer", arguments: { question: "When?" } });
    const { record } = await talk(agentId);
    const [kept] = record.tools;
    assert.deepEqual([kept.source, kept.state, kept.result], ["app", "completed", '{"answer":"When?"}']);
    const run = (await apps.call(app.host, "GET", `/v1/runs/${kept.run_id}`)).body.data;
    assert.deepEqual(run.metadata, { call_id: record.id, tool_call_id: kept.tool_call_id });
    const misfit = await agentOf({ app_tools: [tool] }, { name: "answer", arguments: { question: 7 } });
    const [refused] = (await talk(misfit)).record.tools;
    assert.deepEqual([refused.state, refused.error], ["failed", "invalid_arguments: input.question: Expected string"]);
  });

  it("that are apps are the project's own, and those that the agent names", async () => {
    const { api } = house;
    const app = await apps.deploy(answering);
    const strangers = async () => {
      const project = await api.call("POST", "/v1/projects", { token: api.stranger.token, body: { name: "Theirs" } });
      const place = { name: "Theirs", project_id: project.body.data.id };
      const asStranger = (path: string, body: object) => api.call("POST", path, { token: api.stranger.token, body });
      const workflow = await asStranger("/v1/workflows", { ...place, definition: answering });
      return (await asStranger("/v1/apps", { ...place, workflow_id: workflow.body.data.id })).body.data.id;
    };
    for (const app_id of [await strangers(), crypto.randomUUID()]) {
      const config = { app_tools: [{ app_id, name: "answer" }] };
      const refused = await house.call("POST", "/v1/agents/voice/agents", {
        name: "Desk",
        project_id: api.projectId,
        config,
      });
      assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [400, ["config.app_tools.0.app_id"]]);
    }
    const agentId = await agentOf({ app_tools: [{ app_id: app.id, name: "answer" }] });
    const caller = await house.dial(agentId);
    const { call_id } = await caller.message("call_started");
    const start = (app_id: string, tool_call_id = "c1", at = call_id) =>
      api.internal("POST", `/internal/calls/${at}/runs`, { app_id, tool_call_id, input: { question: "When?" } });
    assert.equal((await start(await strangers())).status, 404);
    assert.equal((await start((await apps.deploy(answering)).id)).status, 404, "the agent does not name it");
    const both = await Promise.all([start(app.id), start(app.id)]);
    const ids = [...both, await start(app.id)].map(({ body }) => body.run_id);
    assert.equal(new Set(ids).size, 1);
    assert.notEqual((await start(app.id, "c2")).body.run_id, ids[0]);
    const second = await house.dial(agentId);
    const foreign = (await second.message("call_started")).call_id;
    for (const act of ["events?after=0", "cancel"]) {
      const method = act === "cancel" ? "POST" : "GET";
      const answered = await api.internal(method, `/internal/calls/${foreign}/runs/${ids[0]}/${act}`);
      assert.equal(answered.status, 404, "it is another call's run");
    }
    await recordOf(caller);
    assert.equal((await start(app.id, "c3")).status, 404, "the call is over");
    await recordOf(second);
  });

  it("that are apps end with the call where they are to, whoever is left to end them", async () => {
    const app = await apps.deploy(approving);
    const asking = (on_call_end: string) =>
      agentOf(
        { app_tools: [{ app_id: app.id, name: "ask", on_call_end }] },
        { name: "ask", arguments: { question: "?" } },
      );
    const ofRun = async (on_call_end: string) => {
      const caller = await house.dial(await asking(on_call_end));
      caller.send({ type: "user_message", text: "Ask them" });
      const run_id = await caller.until(() => {
        const events = caller.messages.flatMap((one) => (one.type === "tool_event" ? [one] : []));
        return events.find((one) => one.run_id)?.run_id;
      });
      await recordOf(caller);
      return run_id;
    };
    const [goesOn, ended] = [await ofRun("finish"), await ofRun("cancel")];
    await apps.until(app.host, ended, "canceled");
    const silent = await house.dial(await asking("cancel"));
    const { call_id } = await silent.message("call_started");
    const body = { app_id: app.id, tool_call_id: "c1", input: { question: "?" } };
    const left = (await house.api.internal("POST", `/internal/calls/${call_id}/runs`, body)).body.run_id;
    await recordOf(silent);
    const { sql, bus, now } = house.api;
    await cancelRunsOfEndedCalls({ sql, bus, now });
    await apps.until(app.host, left, "canceled");
    await apps.until(app.host, goesOn, "awaiting_input");
  });

  it("show what opens their hosts to nobody else: no answer, message, log or table has it in plain text", async () => {
    const planted = (name: string) => `planted-${name}-4f1d8a`;
    answer = ({ headers, url: path }, response) => {
      const shown = `${headers["x-key"]} ${headers.authorization}`;
      response.writeHead(path === "/fails" ? 409 : path?.startsWith("/mcp") ? 401 : 200).end(shown);
    };
    const opened = await house.connect("bearer", { secret: planted("tool-connection"), baseUrl: url });
    const openedMcp = await house.connect("bearer", { secret: planted("mcp-connection"), baseUrl: url });
    const model = await house.connect("openai", { secret: planted("model-connection"), baseUrl: `${url}/mcp` });
    const headerOf = (name: string) => ({ headers: [{ key: "X-Key", value: planted(name) }] });
    const config = {
      tools: [
        { name: "works", url: `${url}/works`, connection_id: opened, ...headerOf("header") },
        { name: "fails", url: `${url}/fails`, connection_id: opened, ...headerOf("header-of-failing") },
      ],
      mcp_servers: [{ name: "pms", url: `${url}/mcp`, connection_id: openedMcp, ...headerOf("header-of-mcp") }],
    };
    const agentId = await agentOf(config, { name: "works" }, { name: "fails" });
    const { caller, record } = await talk(agentId);
    assert.deepEqual(
      record.tools.map(({ name, result, error }: { name: string; result: string; error: string }) => [
        name,
        (result ?? error).replace(/^.*: /, ""),
      ]),
      [
        ["works", "******** ********"],
        ["fails", "******** ********"],
      ],
    );
    const deaf = await house.agent({ llm: { provider: "openai", model: "m", connection_id: model } });
    const refused = await house.dial(deaf);
    refused.send({ type: "user_message", text: "Hello" });
    await refused.message("error");
    const silent = await recordOf(refused);
    const { sql, bus: _, ...rest } = house.api;
    const tables = await sql<{ place: string }[]>`
      select quote_ident(schemaname) || '.' || quote_ident(tablename) as place from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`;
    const rows = await Promise.all(
      tables.map(async ({ place }) =>
        (await sql.unsafe(`select row_to_json(one)::text as row from ${place} one`)).map(({ row }) => row),
      ),
    );
    assert.ok(
      rows.flat().some((row) => String(row).includes("works")),
      "the tables were read",
    );
    const answers = await Promise.all(
      [
        `/v1/agents/voice/agents/${agentId}`,
        "/v1/agents/voice/agents",
        "/v1/connections",
        "/v1/agents/voice/calls",
      ].map(async (path) => (await house.call("GET", path)).body),
    );
    const everything = {
      messages: [caller.messages, refused.messages],
      records: [record, silent],
      rows: rows.flat(),
      answers,
      logs: house.logged,
      metrics: await rest.metrics.registry.metrics(),
    };
    for (const [place, texts] of Object.entries(everything)) {
      const text = JSON.stringify(texts);
      for (const mark of [
        "planted-",
        Buffer.from("planted-").toString("hex"),
        Buffer.from("planted-").toString("base64").slice(0, 9),
      ]) {
        const at = text.indexOf(mark);
        assert.equal(at, -1, `${place}: ${text.slice(Math.max(0, at - 200), at + 100)}`);
      }
    }
  });
});
