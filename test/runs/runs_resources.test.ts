/** Resources of the platform over their lives: what may be deleted when, what is listed, what ends by itself. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { purgeConnectTokens } from "#connections/connect_tokens.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "#test/kit/app_client.ts";

describe("what others still need", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());

  const remove = async (path: string) => (await client.manage("DELETE", path)).status;

  it("is not deleted: a project, workflow or app goes once nothing of it is in use, and its keys with it", async () => {
    const place = { project_id: (await client.manage("POST", "/v1/projects", { name: "P" })).body.data.id };
    const project = `/v1/projects/${place.project_id}`;
    const key = (await client.manage("POST", "/v1/access-keys", { name: "k", ...place })).body.data.secret;

    const connection = { name: "C", provider: "bearer", secret: "s", ...place };
    const { id: connectionId } = (await client.manage("POST", "/v1/connections", connection)).body.data;
    assert.equal(await remove(project), 409);
    assert.equal(await remove(`/v1/connections/${connectionId}`), 200);

    const { id, host, workflowId } = await deployIn(place.project_id);
    assert.deepEqual([await remove(project), await remove(`/v1/workflows/${workflowId}`)], [409, 409]);
    const run = await client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
      token: key,
    });
    assert.equal(run.status, 202);
    const busy = await client.manage("DELETE", `/v1/apps/${id}`);
    assert.equal(busy.status, 409);
    assert.match(busy.body.error.details.app_id, /cancel them first/);
    await client.call(host, "POST", `/v1/runs/${run.body.data.id}/cancel`, { body: {}, token: key });
    assert.equal(await remove(`/v1/apps/${id}`), 200);
    assert.equal((await client.call(host, "GET", "/v1/runs", { token: key })).status, 404);
    assert.equal((await api.sql`select 1 from run where id = ${run.body.data.id}`).length, 0);

    const refused = await client.manage("DELETE", project);
    assert.equal(refused.status, 409);
    assert.match(refused.body.error.details.project_id, /archive or delete them first/);
    assert.equal(await remove(`/v1/workflows/${workflowId}`), 200);
    assert.equal(await remove(project), 200);
    assert.deepEqual([await remove(project), (await client.manage("GET", project)).status], [404, 404]);
    const elsewhere = await client.deploy(answering);
    assert.equal((await client.call(elsewhere.host, "GET", "/v1/runs", { token: key })).status, 401);
  });

  async function deployIn(projectId: string) {
    const body = { name: "W", project_id: projectId };
    const workflow = await client.manage("POST", "/v1/workflows", { ...body, definition: approving });
    const created = await client.manage("POST", "/v1/apps", { ...body, workflow_id: workflow.body.data.id });
    return { id: created.body.data.id, host: created.body.data.hostname, workflowId: workflow.body.data.id };
  }

  it("is never half deleted: of a project's end and things made in it at the same moment, one wins", async () => {
    for (let round = 0; round < 8; round += 1) {
      const { id: project_id } = (await client.manage("POST", "/v1/projects", { name: "P" })).body.data;
      const [removed, ...made] = await Promise.all([
        client.manage("DELETE", `/v1/projects/${project_id}`),
        client.manage("POST", "/v1/connections", { name: "C", project_id, provider: "bearer", secret: "s" }),
        client.manage("POST", "/v1/workflows", { name: "W", project_id, definition: answering }),
      ]);
      const statuses = made.map(({ status }) => status).sort();
      const counted = await api.sql<{ count: number }[]>`
        select (select count(*) from connection where project_id = ${project_id})
          + (select count(*) from workflow where project_id = ${project_id}) as count`;
      const left = Number(counted[0]?.count);
      if (removed.status === 200) assert.deepEqual([statuses, left], [[404, 404], 0]);
      else assert.ok(removed.status === 409 && statuses.includes(201) && left > 0, `${removed.status} ${statuses}`);
    }
  });
});

describe("sessions of an app", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());

  it("are listed with the input of their first run, the newest first, by page", async () => {
    const { id, host } = await client.deploy(answering);
    for (const [session_id, question] of [
      ["one", "first"],
      ["one", "second"],
      ["two", "third"],
      [undefined, "alone"],
    ] as const) {
      await client.call(host, "POST", "/v1/runs", {
        body: { background: true, input: { question }, ...(session_id && { session_id }) },
      });
    }
    const path = `/v1/apps/${id}/sessions`;
    const { status, body } = await client.manage("GET", path);
    assert.equal(status, 200);
    assert.deepEqual(
      body.data.map((session: { id: string; input: object }) => [session.id, session.input]),
      [
        ["two", { question: "third" }],
        ["one", { question: "first" }],
      ],
    );
    assert.match(body.data[0].created_at, /^\d{4}-/);
    assert.equal(body.pagination.total_count, 2);
    const runs = async (query: string) => (await client.call(host, "GET", `/v1/runs?${query}`)).body.data.length;
    const { created_at } = body.data[1];
    assert.deepEqual(
      [await runs(`created_at:lt=${created_at}`), await runs(`created_at:gte=${created_at}`)],
      [0, 4],
      "a session begins with its first run",
    );
    assert.equal(await runs("started_at:lte=2030-01-01T00:00:00Z"), 0, "none has begun");
    const early = await client.manage("GET", `${path}?created_at:lte=${created_at}`);
    assert.deepEqual([early.body.pagination.total_count, early.body.data[0].id], [1, "one"]);
    const second = (await client.manage("GET", `${path}?page=2&page_size=1&sort=created_at`)).body;
    assert.deepEqual([second.data[0].id, second.pagination.page_count], ["two", 2]);
    assert.equal((await api.call("GET", path, { token: api.member.token })).status, 403);
  });
});

describe("what lasts a day", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());
  const hourMs = 3_600_000;

  it("is a connect token, for one end user of one app, shown once and kept as a digest", async () => {
    const { host } = await client.deploy(answering);
    const { status, body } = await client.call(host, "POST", "/v1/connect/tokens", { body: { user_id: "guest 17" } });
    assert.equal(status, 201);
    const { token, user_id, expires_at } = body.data;
    assert.equal(user_id, "guest 17");
    const lifeMs = Date.parse(expires_at) - api.now().getTime();
    assert.ok(Math.abs(lifeMs - 24 * hourMs) < 60_000, `${lifeMs} ms`);
    const kept = () => api.sql`select row_to_json(connect_token)::text as row from connect_token`;
    const [row] = await kept();
    assert.ok(row && !row.row.includes(token.slice(8)));
    await purgeConnectTokens({ sql: api.sql, now: () => new Date(Date.now() + 23 * hourMs) });
    assert.equal((await kept()).length, 1);
    await purgeConnectTokens({ sql: api.sql, now: () => new Date(Date.now() + 25 * hourMs) });
    assert.equal((await kept()).length, 0);
    for (const wrong of [{}, { user_id: "" }, { user_id: "x".repeat(201) }, { user_id: "x", app_id: "y" }]) {
      assert.equal((await client.call(host, "POST", "/v1/connect/tokens", { body: wrong })).status, 400);
    }
  });

  it("is an Idempotency-Key: then it makes another run", async () => {
    const { host } = await client.deploy(answering);
    const start = async () => {
      const { body } = await client.call(host, "POST", "/v1/runs", {
        body: { background: true, input: { question: "?" } },
        headers: { "idempotency-key": "once" },
      });
      return body.data.id;
    };
    const first = await start();
    api.advance(23 * hourMs);
    assert.equal(await start(), first);
    api.advance(2 * hourMs);
    assert.notEqual(await start(), first);
  });
});

describe("the way to an app through the management API", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());

  it("takes any method, path and query, and answers what the app answers", async () => {
    const { id, host } = await client.deploy(answering);
    const invoke = `/v1/apps/${id}/invoke`;
    for (const [method, path] of [
      ["GET", "/v1/runs?page_size=1"],
      ["PUT", "/v1/runs"],
      ["DELETE", "/"],
      ["GET", "//elsewhere.example/v1/runs"],
      ["GET", "/internal/runs/positions"],
      ["GET", "/v1/runs?surprise=1"],
    ] as const) {
      const [direct, through] = [
        await client.call(host, method, path.replace("//elsewhere.example", "/elsewhere.example")),
        await client.manage(method, invoke + path),
      ];
      assert.deepEqual([through.status, through.body], [direct.status, direct.body], `${method} ${path}`);
    }
    const { status, body } = await client.manage("POST", `${invoke}/v1/runs`, {
      input: { question: "?" },
      background: true,
    });
    assert.equal(status, 202);
    assert.equal((await client.call(host, "GET", `/v1/runs/${body.data.id}`)).status, 200);
    for (const wrong of [`/v1/apps/${crypto.randomUUID()}/invoke`, "/v1/apps/1/invoke"]) {
      assert.equal((await client.manage("POST", wrong, {})).status, 404);
    }
  });
});
