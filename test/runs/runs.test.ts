/** Runs from the management API to their end: the api and a worker's engine on one database. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gatewayHeader, type RunEventPage, type StreamGrant } from "#contracts/internal_runs.ts";
import type { RunEvent } from "#contracts/run_event.ts";
import { type ApiHarness, internalSecret, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "#test/kit/app_client.ts";

describe("apps and their runs", () => {
  let api: ApiHarness;
  let worker: { close(): Promise<void> };
  let client: AppClient;

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    worker = await startTestWorker(api);
  });
  after(async () => {
    await worker.close();
    await api.close();
  });

  it("runs a workflow and answers when it is over", async () => {
    const { host, id } = await client.deploy(answering);
    assert.match(host, /^front-desk-[a-z0-9]{6}\.apps\.test$/);
    const { status, body } = await client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "Late check-out?" }, session_id: "s1" },
    });
    assert.equal(status, 200, JSON.stringify(body));
    const { status: runStatus, output, app_id, session_id, input_requests, usage } = body.data;
    assert.deepEqual(
      { runStatus, output, app_id, session_id, input_requests },
      {
        runStatus: "succeeded",
        output: { answer: "Late check-out?" },
        app_id: id,
        session_id: "s1",
        input_requests: [],
      },
    );
    assert.ok(usage.total_tokens > 0);
    const events = await client.call(host, "GET", `/v1/runs/${body.data.id}/events?page_size=100`);
    const ids = events.body.data.map((event: RunEvent) => event.id);
    assert.deepEqual(
      ids,
      ids.map((_: number, i: number) => i + 1),
    );
    assert.equal(events.body.data[0].type, "run.created");
    assert.equal(events.body.data.at(-1).type, "run.succeeded");
    assert.equal(body.data.last_event_id, ids.length);
  });

  it("refuses inputs that do not fit, naming the field", async () => {
    const { host } = await client.deploy(answering);
    const { status, body } = await client.call(host, "POST", "/v1/runs", { body: { input: {} } });
    assert.equal(status, 400);
    assert.equal(body.error.details["input.question"], "Expected a value: the field is required");
  });

  it("waits for an approval without a worker, takes one of two racing answers and goes on with it", async () => {
    const { host } = await client.deploy(approving);
    const started = await client.call(host, "POST", "/v1/runs", { body: { input: { question: "Dear guest" } } });
    assert.equal(started.status, 202);
    const { id, status, input_requests } = started.body.data;
    assert.equal(status, "awaiting_input");
    assert.deepEqual(input_requests[0].params, { text: "Dear guest", to: "guest" });
    const answer = (change: object) =>
      client.call(host, "POST", `/v1/runs/${id}/resume`, {
        body: { responses: [{ input_request_id: input_requests[0].id, decision: "approve", ...change }] },
      });
    const fixed = await answer({ params: { to: "everybody" } });
    assert.equal(fixed.status, 400);
    assert.match(fixed.body.error.details.to, /cannot be changed/);
    const racing = await Promise.all([answer({ params: { text: "A" } }), answer({ params: { text: "B" } })]);
    assert.deepEqual(racing.map((one) => one.status).sort(), [200, 400]);
    const winner = racing[0]?.status === 200 ? "A" : "B";
    const done = await client.until(host, id, "succeeded");
    assert.deepEqual(done.output, { sent: winner });
    assert.equal((await answer({ params: { text: winner } })).status, 200);
    assert.equal((await answer({ decision: "reject" })).status, 400);
  });

  it("creates one run for one Idempotency-Key, however many ask at once", async () => {
    const { host } = await client.deploy(answering);
    const post = (question: string) =>
      client.call(host, "POST", "/v1/runs", {
        body: { input: { question }, background: true },
        headers: { "idempotency-key": "k1" },
      });
    const answers = await Promise.all(Array.from({ length: 10 }, () => post("same")));
    assert.ok(answers.every(({ status }) => status === 202));
    assert.equal(new Set(answers.map(({ body }) => body.data.id)).size, 1);
    assert.equal((await post("other")).status, 409);
    assert.equal((await client.call(host, "GET", "/v1/runs")).body.pagination.total_count, 1);
  });

  it("cancels a waiting run at once, and twice alike", async () => {
    const { host } = await client.deploy(approving);
    const { body } = await client.call(host, "POST", "/v1/runs", { body: { input: { question: "?" } } });
    const path = `/v1/runs/${body.data.id}/cancel`;
    const [first, second] = [
      await client.call(host, "POST", path, { body: { reason: "no" } }),
      await client.call(host, "POST", path, { body: {} }),
    ];
    assert.deepEqual([first.body.data.status, second.body.data.status], ["canceled", "canceled"]);
    assert.equal(first.body.data.last_event_id, second.body.data.last_event_id);
  });

  it("is one function at its root: envelope or plain fields, and async with 202", async () => {
    const { host } = await client.deploy(answering);
    const plain = await client.call(host, "POST", "/", { body: { question: "plain" } });
    assert.deepEqual([plain.status, plain.body], [200, { answer: "plain" }]);
    const wrapped = await client.call(host, "POST", "/", { body: { input: { question: "wrapped" } } });
    assert.deepEqual([wrapped.status, wrapped.body], [200, { answer: "wrapped" }]);
    const accepted = await client.call(host, "POST", "/", {
      body: { input: { question: "later" }, execution_mode: "async" },
    });
    assert.deepEqual([accepted.status, accepted.body.status], [202, "accepted"]);
    assert.deepEqual((await client.until(host, accepted.body.id, "succeeded")).output, { answer: "later" });
    const misplaced = await client.call(host, "POST", "/", {
      body: { input: { question: "x" }, callbacks: [{ url: "https://example.com" }] },
    });
    assert.equal(misplaced.status, 400);
    const callbacks = [{ url: "https://127.0.0.1/hook" }, { url: "http://example.com" }];
    const inside = await client.call(host, "POST", "/", {
      body: { input: { question: "x" }, execution_mode: "async", callbacks },
    });
    assert.equal(inside.status, 400);
    assert.deepEqual(Object.keys(inside.body.error.details), ["callbacks.0.url", "callbacks.1.url"]);
  });

  it("hands streams to the gateway only, with the cursor checked", async () => {
    const { host } = await client.deploy(answering);
    const headers = { [gatewayHeader]: internalSecret };
    assert.equal(
      (await client.call(host, "POST", "/v1/runs", { body: { input: { question: "x" }, stream: true } })).status,
      400,
    );
    const granted = await client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "x" }, stream: true },
      headers,
    });
    const { run_id, after: from } = granted.body as StreamGrant;
    assert.equal(from, 0);
    const run = await client.until(host, run_id, "succeeded");
    const stream = (query: string, cursor?: string) =>
      client.call(host, "GET", `/v1/runs/${run_id}/stream${query}`, {
        headers: { ...headers, ...(cursor && { "last-event-id": cursor }) },
      });
    assert.equal((await stream("?starting_after=2", "3")).body.after, 3);
    assert.equal((await stream("?types=run.succeeded,content.delta")).body.types.length, 2);
    assert.equal((await stream(`?starting_after=${run.last_event_id}`)).status, 204);
    assert.equal((await stream(`?starting_after=${run.last_event_id + 1}`)).status, 400);
    assert.equal((await stream("?starting_after=soon")).status, 400);
    const page = (await api.internal("GET", `/internal/runs/${run_id}/events?after=1&limit=2`)).body as RunEventPage;
    assert.deepEqual(
      page.events.map(({ id }) => id),
      [2, 3],
    );
    assert.deepEqual([page.status, page.last_event_id], ["succeeded", run.last_event_id]);
  });

  it("opens to keys of its project or organization, and to nobody else", async () => {
    const { host, id } = await client.deploy(answering);
    const other = await client.manage("POST", "/v1/projects", { name: "Other" });
    const otherKey = await client.manage("POST", "/v1/access-keys", { name: "o", project_id: other.body.data.id });
    const organizationKey = await client.manage("POST", "/v1/access-keys", { name: "org" });
    const strangersKey = await api.call("POST", "/v1/access-keys", { token: api.stranger.token, body: { name: "s" } });
    const statusWith = async (token: string) => (await client.call(host, "GET", "/v1/runs", { token })).status;
    assert.deepEqual(
      await Promise.all(
        [
          "",
          "svc_acc_nobody",
          api.owner.token,
          strangersKey.body.data.secret,
          otherKey.body.data.secret,
          organizationKey.body.data.secret,
        ].map(statusWith),
      ),
      [401, 401, 401, 404, 403, 200],
    );
    await client.manage("DELETE", `/v1/access-keys/${organizationKey.body.data.id}`);
    assert.equal(await statusWith(organizationKey.body.data.secret), 401);
    assert.equal((await client.call("nobody.apps.test", "GET", "/v1/runs")).status, 404);
    await client.manage("PATCH", `/v1/apps/${id}`, {
      access_control: { access_type: "public" },
      policy: { public_requests_per_minute: 2 },
    });
    assert.deepEqual([await statusWith(""), await statusWith(""), await statusWith("")], [401, 401, 429]);
  });

  it("keeps a run from the keys of another app", async () => {
    const one = await client.deploy(answering);
    const two = await client.deploy(answering);
    const { body } = await client.call(one.host, "POST", "/v1/runs", { body: { input: { question: "x" } } });
    assert.equal((await client.call(two.host, "GET", `/v1/runs/${body.data.id}`)).status, 404);
    assert.equal((await client.call(two.host, "POST", `/v1/runs/${body.data.id}/cancel`, { body: {} })).status, 404);
  });

  it("is reached through the management API by any method", async () => {
    const { id } = await client.deploy(answering);
    const invoked = await client.manage("POST", `/v1/apps/${id}/invoke`, { question: "through" });
    assert.deepEqual([invoked.status, invoked.body], [200, { answer: "through" }]);
    assert.equal((await client.manage("GET", `/v1/apps/${id}/invoke/v1/runs`)).body.pagination.total_count, 1);
    assert.equal((await api.call("GET", `/v1/apps/${id}/invoke/v1/runs`, { token: api.stranger.token })).status, 404);
    assert.equal((await api.call("GET", `/v1/apps/${id}/invoke/v1/runs`, { token: api.member.token })).status, 403);
    assert.equal((await api.call("GET", `/v1/apps/${id}/invoke/v1/runs`)).status, 401);
  });

  it("follows the session's policy", async () => {
    const { host, id } = await client.deploy(approving, { policy: { session_policy: "reject" } });
    const start = () => client.call(host, "POST", "/v1/runs", { body: { input: { question: "?" }, session_id: "s" } });
    const first = await start();
    assert.equal((await start()).status, 409);
    await client.manage("PATCH", `/v1/apps/${id}`, { policy: { session_policy: "cancel_previous" } });
    const second = await start();
    assert.equal((await client.call(host, "GET", `/v1/runs/${first.body.data.id}`)).body.data.status, "canceled");
    await client.manage("PATCH", `/v1/apps/${id}`, { policy: { session_policy: "enqueue" } });
    const third = await client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, session_id: "s", background: true },
    });
    assert.equal((await client.call(host, "GET", `/v1/runs/${third.body.data.id}`)).body.data.status, "pending");
    await client.call(host, "POST", `/v1/runs/${second.body.data.id}/cancel`, { body: {} });
    await client.until(host, third.body.data.id, "awaiting_input");
  });

  it("refuses more than the queue holds", async () => {
    const { host } = await client.deploy(approving, {
      policy: { max_concurrent_runs: 1, max_queued_runs: 1, session_policy: "enqueue" },
    });
    const start = () =>
      client.call(host, "POST", "/v1/runs", { body: { input: { question: "?" }, session_id: "s", background: true } });
    const first = await start();
    await client.until(host, first.body.data.id, "awaiting_input");
    assert.equal((await start()).status, 202);
    const refused = await start();
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.headers.get("retry-after")],
      [429, "too_many_requests", "1"],
    );
  });

  it("answers bad requests clearly", async () => {
    const { host } = await client.deploy(answering);
    const post = async (body: unknown) => (await client.call(host, "POST", "/v1/runs", { body })).status;
    assert.deepEqual(
      [
        await post("{"),
        await post({ more: 1 }),
        await post({ input: [] }),
        await post({ background: true, stream: true, input: { question: "x" } }),
        await post({ background: true, on_disconnect: "cancel", input: { question: "x" } }),
      ],
      [400, 400, 400, 400, 400],
    );
    assert.equal(await post(`{"input":{"question":"${"x".repeat(10_000_000)}"}}`), 413);
    assert.equal((await client.call(host, "GET", "/v1/runs/not-a-uuid")).status, 404);
    assert.equal((await client.call(host, "GET", `/v1/runs/${crypto.randomUUID()}/events`)).status, 404);
  });
});

describe("workflows and connections", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());
  const manage = (method: string, path: string, body?: unknown) =>
    api.call(method, path, { token: api.owner.token, body });

  it("versions definitions, also when two are saved at once, and names each offending node", async () => {
    const created = await manage("POST", "/v1/workflows", {
      name: "W",
      project_id: api.projectId,
      definition: answering,
    });
    const path = `/v1/workflows/${created.body.data.id}`;
    const saved = await Promise.all([1, 2, 3].map(() => manage("POST", `${path}/versions`, { definition: approving })));
    assert.deepEqual(saved.map(({ body }) => body.data.version).sort(), [2, 3, 4]);
    const listed = await manage("GET", `${path}/versions`);
    assert.deepEqual(
      listed.body.data.map(({ version }: { version: number }) => version),
      [4, 3, 2, 1],
    );
    assert.equal((await manage("GET", path)).body.data.latest_version_id, listed.body.data[0].id);
    const broken = {
      ...answering,
      nodes: answering.nodes.with(1, { ...answering.nodes[1], inputs: { q: "$.nodes.out.output" } } as never),
    };
    const refused = await manage("POST", `${path}/versions`, { definition: broken });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.details["definition.nodes.1.inputs"], /before this one/);
  });

  it("keeps a workflow that an app uses", async () => {
    const { body } = await manage("POST", "/v1/workflows", {
      name: "W",
      project_id: api.projectId,
      definition: answering,
    });
    const app = await manage("POST", "/v1/apps", { name: "A", project_id: api.projectId, workflow_id: body.data.id });
    assert.equal((await manage("DELETE", `/v1/workflows/${body.data.id}`)).status, 409);
    assert.equal((await manage("DELETE", `/v1/apps/${app.body.data.id}`)).status, 200);
    assert.equal((await manage("DELETE", `/v1/projects/${api.projectId}`)).status, 409);
    assert.equal((await manage("DELETE", `/v1/workflows/${body.data.id}`)).status, 200);
    assert.equal((await manage("GET", `/v1/apps/${app.body.data.id}`)).status, 404);
  });

  it("never answers a connection's secret, and refuses addresses that lead inside", async () => {
    const body = {
      name: "LLM",
      project_id: api.projectId,
      provider: "openai",
      base_url: "https://llm.example/v1",
      secret: "sk-secret-0123456789",
    };
    const created = await manage("POST", "/v1/connections", body);
    assert.equal(created.status, 201, JSON.stringify(created.body));
    assert.equal(created.body.data.last_four, "6789");
    const everything = JSON.stringify([created.body, (await manage("GET", "/v1/connections")).body]);
    assert.ok(!everything.includes("sk-secret"));
    const [row] = await api.sql<{ secret_encrypted: Buffer }[]>`select secret_encrypted from connection`;
    assert.ok(row && !row.secret_encrypted.includes("sk-secret"));
    for (const base_url of ["http://127.0.0.1:1/v1", "http://[::1]/v1", "http://localhost/v1"]) {
      assert.equal((await manage("POST", "/v1/connections", { ...body, base_url })).status, 400);
    }
    assert.equal(
      (await api.call("GET", `/v1/connections/${created.body.data.id}`, { token: api.stranger.token })).status,
      404,
    );
  });
});
