import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, type DeployedApp, openAppClient } from "#test/kit/app_client.ts";
import { madeHead, madeSpan } from "#test/kit/traces/made_spans.ts";
import { openSpanStore } from "#traces/open_span_store.ts";
import type { Span, TraceHead } from "#traces/span.ts";
import type { SpanStore } from "#traces/span_store.ts";

const minuteMs = 60_000;

describe("traces on the management API", () => {
  let api: ApiHarness;
  let client: AppClient;
  let app: DeployedApp;
  let store: SpanStore;
  let beganAt: Date;
  /** Of the app, the oldest first, a minute apart; the last one is the project's alone. */
  const ids: string[] = [];

  async function write(minute: number, head: Partial<TraceHead> = {}, span: Partial<Span> = {}): Promise<string> {
    const trace = madeHead({ organization_id: api.owner.organizationId, project_id: api.projectId }, head);
    const started_at = new Date(beganAt.getTime() + minute * minuteMs);
    await store.writeSpans([{ trace, spans: [madeSpan({ span_id: "00f067aa0ba902b7", started_at, ...span })] }]);
    return trace.id;
  }

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    app = await client.deploy(answering);
    store = openSpanStore(api);
    beganAt = new Date(Math.floor(api.now().getTime() / minuteMs) * minuteMs - 60 * minuteMs);
    const of = { app_id: app.id };
    ids.push(await write(0, { ...of, session_id: "one", user_id: "ann" }, { input: { n: 0 } }));
    ids.push(await write(1, { ...of, session_id: "one", user_id: "bob" }, { status: "failed", input: { n: 1 } }));
    ids.push(
      await write(2, { ...of, session_id: "two", user_id: "ann" }, { kind: "llm", model: "m", prompt_tokens: 5 }),
    );
    ids.push(await write(3));
  });
  after(() => api.close());

  const get = (path: string, token = api.owner.token): Promise<Answer> => api.call("GET", path, { token });
  const indexes = ({ status, body }: Answer): number[] => {
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.map(({ id }: { id: string }) => ids.indexOf(id));
  };
  const time = (minute: number) => new Date(beganAt.getTime() + minute * minuteMs).toISOString();
  const ofApp = () => `/v1/apps/${app.id}`;
  const ofProject = () => `/v1/projects/${api.projectId}`;

  it("lists them of an app and of a project, the newest first, by every filter, sorted and by page", async () => {
    assert.deepEqual(indexes(await get(`${ofApp()}/traces`)), [2, 1, 0]);
    assert.deepEqual(indexes(await get(`${ofProject()}/traces`)), [3, 2, 1, 0]);
    for (const [query, expected] of [
      [`started_at:gte=${time(1)}`, [2, 1]],
      [`started_at:gt=${time(1)}`, [2]],
      [`started_at:lte=${time(1)}`, [1, 0]],
      [`started_at:lt=${time(1)}&started_at:gte=${time(0)}`, [0]],
      ["status=failed", [1]],
      ["session_id=one", [1, 0]],
      ["user_id=ann", [2, 0]],
      ["user_id=ann&session_id=two", [2]],
      ["model=m", [2]],
      ["sort=started_at", [0, 1, 2]],
      ["page=2&page_size=2", [0]],
    ] as const) {
      assert.deepEqual(indexes(await get(`${ofApp()}/traces?${query}`)), expected, query);
    }
    const { pagination } = (await get(`${ofApp()}/traces?page_size=2`)).body;
    assert.deepEqual(pagination, { page: 1, page_size: 2, page_count: 2, total_count: 3 });
    for (const query of [
      "status=odd",
      "sort=input",
      "started_at:gt=now",
      `started_at:gt=${time(0)}&started_at:gte=${time(0)}`,
    ]) {
      assert.equal((await get(`${ofApp()}/traces?${query}`)).status, 400, query);
    }
  });

  it("reads one by its id or by the hex digits that other programs know, with its spans", async () => {
    const id = ids[2] ?? "";
    for (const name of [id, id.replaceAll("-", ""), id.toUpperCase()]) {
      const { body } = await get(`${ofApp()}/traces/${name}?include_spans=true`);
      assert.deepEqual([body.data.id, body.data.usage.prompt_tokens, body.data.spans.length], [id, 5, 1], name);
    }
    assert.equal((await get(`${ofApp()}/traces/${id}`)).body.data.spans, undefined);
    const spans = (await get(`${ofApp()}/traces/${id}/spans`)).body;
    assert.deepEqual([spans.data[0].kind, spans.pagination.total_count], ["llm", 1]);
    assert.equal((await get(`${ofApp()}/traces/${ids[3]}`)).status, 404, "another app's, or no app's");
    for (const name of ["nonsense", crypto.randomUUID()])
      assert.equal((await get(`${ofProject()}/traces/${name}`)).status, 404);
  });

  it("groups them by session", async () => {
    const sessions = (await get(`${ofProject()}/sessions`)).body.data;
    assert.deepEqual(
      sessions.map((one: { id: string; trace_count: number; input: unknown }) => [one.id, one.trace_count, one.input]),
      [
        ["two", 1, null],
        ["one", 2, { n: 0 }],
      ],
    );
    const until = `created_at:lt=${time(2)}`;
    assert.deepEqual(
      (await get(`${ofApp()}/sessions?${until}`)).body.data.map(({ id, input }: { id: string; input: unknown }) => [
        id,
        input,
      ]),
      [["one", { n: 0 }]],
    );
    assert.deepEqual(indexes(await get(`${ofApp()}/sessions/one/traces`)), [0, 1]);
    assert.deepEqual(indexes(await get(`${ofProject()}/sessions/two/traces?started_at:gt=${time(2)}`)), []);
  });

  it("opens to nobody else", async () => {
    for (const path of [`${ofApp()}/traces`, `${ofProject()}/traces/${ids[0]}`, `${ofProject()}/traces/download`]) {
      assert.equal((await get(path, api.stranger.token)).status, 404, path);
      assert.equal((await get(path, api.member.token)).status, 403, path);
      assert.equal((await get(path, "")).status, 401, path);
    }
  });

  async function download(path: string) {
    const headers = { authorization: `Bearer ${api.owner.token}` };
    return api.app.fetch(new Request(`http://api.test${path}`, { headers }));
  }

  it("downloads them as one array, the newest first, under a name to save", async () => {
    for (const [path, name, expected] of [
      [`${ofApp()}/traces/download`, app.id, [2, 1, 0]],
      [`${ofProject()}/traces/download`, api.projectId, [3, 2, 1, 0]],
      [`${ofProject()}/traces/download?limit=1`, api.projectId, [3]],
      [`${ofApp()}/traces/download?started_at:gt=${time(1)}`, app.id, [2]],
      [`${ofApp()}/traces/download?started_at:gt=${time(9)}`, app.id, []],
    ] as const) {
      const response = await download(path);
      assert.equal(response.headers.get("content-type"), "application/octet-stream");
      assert.equal(response.headers.get("content-disposition"), `attachment; filename="${name}-traces.json"`);
      const traces = (await response.json()) as { id: string }[];
      assert.deepEqual(
        traces.map(({ id }) => ids.indexOf(id)),
        expected,
        path,
      );
      const fields = ["id", "started_at", "ended_at", "status", "input", "output", "usage"];
      for (const trace of traces) assert.deepEqual(Object.keys(trace), fields);
    }
    const both = `started_at:lt=${time(1)}&started_at:lte=${time(1)}`;
    for (const query of ["limit=0", "limit=1001", "limit=all", "page=1", both]) {
      assert.equal((await download(`${ofApp()}/traces/download?${query}`)).status, 400, query);
    }
  });

  it("downloads the run of a trace with what its nodes did", async () => {
    const { body } = await client.call(app.host, "POST", "/v1/runs", {
      body: { background: true, input: { question: "?" } },
    });
    const run = body.data;
    const of = { id: run.trace_id, app_id: app.id, source: "run", source_id: run.id } as const;
    await write(30, of);
    try {
      const response = await download(`${ofApp()}/traces/download?include_runs=true`);
      const [first, second] = (await response.json()) as { id: string; runs: Record<string, unknown>[] }[];
      assert.deepEqual([first?.id, first?.runs.length, second?.runs], [run.trace_id, 1, []]);
      const fields = ["id", "status", "started_at", "ended_at", "input", "output", "error", "usage", "nodes"];
      assert.deepEqual(Object.keys(first?.runs[0] ?? {}), fields);
      assert.deepEqual([first?.runs[0]?.id, first?.runs[0]?.input], [run.id, { question: "?" }]);
    } finally {
      await store.deleteTraces({ projectId: api.projectId }, [run.trace_id]);
    }
  });

  it("asks the store for no more of a download than is read, and for nothing once its reader is gone", async () => {
    const head = { organization_id: api.owner.organizationId, project_id: api.projectId };
    const many = Array.from({ length: 450 }, (_, at) => ({
      trace: madeHead(head, { session_id: "many" }),
      spans: [
        madeSpan({ span_id: "00f067aa0ba902b7", started_at: new Date(beganAt.getTime() - at), input: "x".repeat(500) }),
      ],
    }));
    await store.writeSpans(many);
    const whole = (await (await download(`${ofProject()}/traces/download`)).json()) as { id: string }[];
    assert.equal(new Set(whole.map(({ id }) => id)).size, 454);

    const response = await download(`${ofProject()}/traces/download`);
    const reader = response.body?.getReader();
    const first = await reader?.read();
    assert.ok((first?.value?.length ?? 0) < 100_000);
    await reader?.cancel();
    const { body } = await api.call("POST", `${ofProject()}/traces/bulk/delete`, {
      token: api.owner.token,
      body: { ids: [...many.map(({ trace }) => trace.id), crypto.randomUUID()] },
    });
    assert.deepEqual(body, { message: "450 of 451 traces deleted", deleted: 450 });
  });

  it("deletes one with its spans", async () => {
    const id = await write(40);
    const path = `${ofProject()}/traces/${id}`;
    assert.equal((await api.call("DELETE", path, { token: api.stranger.token })).status, 404);
    const { status, body } = await api.call("DELETE", path, { token: api.owner.token });
    assert.deepEqual([status, body.data.id], [200, id]);
    assert.equal((await api.call("DELETE", path, { token: api.owner.token })).status, 404);
    assert.equal((await api.sql`select 1 from span where trace_id = ${id}`).length, 0);
    const bulk = `${ofProject()}/traces/bulk/delete`;
    for (const ids of [[], ["nonsense"], [id, id]]) {
      assert.equal((await api.call("POST", bulk, { token: api.owner.token, body: { ids } })).status, 400);
    }
  });
});
