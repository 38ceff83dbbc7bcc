/** One person, planted in every room, handed out and erased; then the whole database is searched for them. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { personalData } from "#api/personal_data.ts";
import { answerSubjectRequest, purgeSubjectRecords } from "#data_subjects/subject_job.ts";
import { subjectRequestTask } from "#data_subjects/subject_requests.ts";
import { createEncryption } from "#store/encryption.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, approving, openAppClient } from "#test/kit/app_client.ts";
import { madeHead, madeSpan } from "#test/kit/traces/made_spans.ts";
import { openSpanStore } from "#traces/open_span_store.ts";
import type { SpanStore } from "#traces/span_store.ts";

const path = "/v1/data-subjects";
const person = { user_id: "guest-4711", email: "ada.byron@example.com", phone: "+44 20 7946 0958" };
/** As they may be written by others. */
const spellings = ["Ada.Byron@example.com", "+442079460958", "+44 (20) 7946-0958"];
/** Who only looks like them. */
const others = ["xada.byron@example.com", "ada.byron@example.com.au", "+4420794609581"];

describe("what is kept of a person", () => {
  let api: ApiHarness;
  let client: AppClient;
  let traces: SpanStore;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    traces = openSpanStore({ sql: api.productSql, now: api.now });
  });
  after(() => api.close());

  const asOwner = (body?: unknown) => ({ token: api.owner.token, ...(body !== undefined && { body }) });

  /** Does the jobs that are due, as a worker would. */
  async function work(): Promise<number> {
    const jobs = await api.sql<{ payload: { request_id: string } }[]>`
      delete from graphile_worker._private_jobs job using graphile_worker._private_tasks task
      where task.id = job.task_id and task.identifier = ${subjectRequestTask} returning job.payload`;
    const encryption = createEncryption(appConfig.encryptionKey);
    const rooms = personalData({ sql: api.productSql, now: api.now, traces });
    for (const { payload } of jobs) {
      await answerSubjectRequest({ sql: api.productSql, encryption, now: api.now, rooms }, payload);
    }
    return jobs.length;
  }
  async function ask(action: "export" | "erase", subject: object, token = api.owner.token) {
    const { status, body } = await api.call("POST", `${path}/${action}`, { token, body: subject });
    assert.equal(status, 202, JSON.stringify(body));
    assert.equal(await work(), 1);
    return (await api.call("GET", `${path}/requests/${body.data.id}`, { token })).body.data;
  }
  const countsOf = (result: { kind: string; found: number; erased?: number }[]) =>
    Object.fromEntries(result.map(({ kind, found, erased }) => [kind, [found, erased]]));

  /** `text` in a run that waits for somebody, a call, a trace of others, an invitation, the request log and a booking. */
  async function plant(text: string, userId: string): Promise<void> {
    const { sql, owner, projectId } = api;
    const { id: appId, host } = await client.deploy(approving);
    const body = { input: { question: `Call ${text}` }, background: true, user_id: userId };
    const run = await client.call(host, "POST", "/v1/runs", { body });
    assert.equal(run.status, 202, JSON.stringify(run.body));
    const agent = await api.call(
      "POST",
      "/v1/agents/voice/agents",
      asOwner({ name: "Desk", project_id: projectId, config: { llm: { provider: "echo" } } }),
    );
    const reserved = await api.call(
      "POST",
      `/v1/agents/voice/agents/${agent.body.data.id}/calls/websocket`,
      asOwner({ metadata: { user_id: userId } }),
    );
    const callId: string = reserved.body.data.call_id;
    await api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id: "g1" });
    const item = { item_id: "i1", turn_id: "turn_1", role: "user", text: `I am ${text}.`, heard_text: "" };
    const closed = await api.internal("POST", `/internal/calls/${callId}/close`, {
      gateway_id: "g1",
      end: { reason: "client_hangup", duration_ms: 10 },
      progress: {
        call_id: callId,
        items: [{ ...item, interrupted: false, start_ms: 0, end_ms: 5 }],
        turns: [],
      },
    });
    assert.equal(closed.status, 204);
    const head = madeHead({ organization_id: owner.organizationId, project_id: projectId }, { user_id: userId });
    const span = madeSpan({
      span_id: "00000000000000aa",
      started_at: api.now(),
      attributes: { said: `It is ${text}` },
    });
    await traces.writeSpans([{ trace: head, spans: [span] }]);
    await sql`
      insert into connect_token (organization_id, app_id, user_id, secret_sha256, created_at, expires_at)
      values (${owner.organizationId}, ${appId}, ${userId}, ${crypto.randomUUID()}, now(), now())`;
    await sql`
      insert into request_log (organization_id, method, endpoint, path, status, duration_ms, payload, created_at)
      values (${owner.organizationId}, 'POST', '/v1/x', '/v1/x', 200, 1, ${sql.json({ note: text })}, now())`;
  }

  /** Columns of the whole database in which it stands, job queue and days of spans included. */
  async function placesOf(text: string): Promise<string[]> {
    const columns = await api.sql<{ schema: string; table: string; column: string }[]>`
      select table_schema as schema, table_name as table, column_name as column from information_schema.columns
      where table_schema in ('public', 'span_day', 'graphile_worker')
        and data_type in ('text', 'json', 'jsonb', 'ARRAY', 'character varying')`;
    const found = await Promise.all(
      columns.map(async ({ schema, table, column }) => {
        const rows = await api.sql`
          select 1 from ${api.sql(schema)}.${api.sql(table)}
          where position(lower(${text}) in lower(${api.sql(column)}::text)) > 0 limit 1`;
        return rows.length > 0 ? [`${schema}.${table}.${column}`] : [];
      }),
    );
    return found.flat();
  }

  it("is found in every room, whatever names them, handed out whole, and nothing of it is left after an erasure", async () => {
    for (const spelling of spellings) await plant(spelling, person.user_id);
    for (const other of others) await plant(other, `of ${other}`);

    const exported = await ask("export", { email: person.email });
    assert.equal(exported.status, "succeeded", JSON.stringify(exported));
    const counts = countsOf(exported.result);
    assert.deepEqual(
      [counts.runs, counts.calls, counts.traces, counts.request_log],
      [
        [1, undefined],
        [1, undefined],
        [1, undefined],
        [1, undefined],
      ],
    );
    const records = await api.call("GET", `${path}/requests/${exported.id}/records`, asOwner());
    assert.equal(records.body.length, 4);
    for (const { kind, record } of records.body) {
      const text = JSON.stringify(record);
      assert.ok(/(?<![a-z])ada\.byron@example\.com(?!\.[a-z])/i.test(text), `${kind}: ${text}`);
    }
    assert.match(records.headers.get("content-disposition") ?? "", /attachment; filename=".*-records\.json"/);

    const phone = await ask("export", { phone: person.phone });
    assert.deepEqual(countsOf(phone.result).runs, [2, undefined], "however it is spaced");

    const erased = await ask("erase", { user_id: person.user_id });
    assert.equal(erased.status, "succeeded");
    const gone = countsOf(erased.result);
    assert.deepEqual(
      [gone.runs, gone.calls, gone.traces, gone.connect_tokens],
      [
        [3, 3],
        [3, 3],
        [3, 3],
        [3, 3],
      ],
    );
    for (const subject of [{ email: person.email }, { phone: person.phone }]) await ask("erase", subject);
    for (const other of others) assert.ok((await placesOf(other)).length > 3, `${other} is somebody else`);
    for (const other of others) {
      await ask("erase", { user_id: `of ${other}` });
      await ask("erase", other.startsWith("+") ? { phone: other } : { email: other });
    }
    api.advance(8 * 86_400_000);
    await purgeSubjectRecords({ sql: api.sql, now: api.now });
    for (const text of [person.user_id, ...spellings, ...others]) assert.deepEqual(await placesOf(text), [], text);
  });

  it("is erased of calls under way as soon as they are over", async () => {
    const agent = await api.call(
      "POST",
      "/v1/agents/voice/agents",
      asOwner({ name: "Desk", project_id: api.projectId, config: { llm: { provider: "echo" } } }),
    );
    const reserved = await api.call(
      "POST",
      `/v1/agents/voice/agents/${agent.body.data.id}/calls/websocket`,
      asOwner({ metadata: { user_id: "guest-1" } }),
    );
    const callId: string = reserved.body.data.call_id;
    await api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id: "g1" });
    const { id, status, result } = await ask("erase", { user_id: "guest-1" });
    assert.equal(status, "running");
    assert.deepEqual(countsOf(result).calls, [1, 0]);
    await api.internal("POST", `/internal/calls/${callId}/close`, {
      gateway_id: "g1",
      end: { reason: "client_hangup", duration_ms: 10 },
      progress: { call_id: callId, items: [], turns: [] },
    });
    assert.equal(await work(), 1);
    const { data } = (await api.call("GET", `${path}/requests/${id}`, asOwner())).body;
    assert.deepEqual([data.status, countsOf(data.result).calls], ["succeeded", [1, 1]]);
  });

  it("is the organization's alone, for its administrators, and who it was is forgotten", async () => {
    await plant("nobody", "guest-2");
    const theirs = await ask("erase", { user_id: "guest-2" }, api.stranger.token);
    assert.deepEqual(countsOf(theirs.result).runs, [0, 0]);
    const member = await api.call("POST", `${path}/erase`, { token: api.member.token, body: { user_id: "guest-2" } });
    assert.equal(member.status, 403);
    assert.equal((await api.call("GET", `${path}/requests/${theirs.id}`, asOwner())).status, 404);
    const kept = await api.sql`select 1 from data_subject_request where subject_sealed is not null`;
    assert.equal(kept.length, 0);
    for (const body of [
      {},
      { user_id: "a", email: "b@c.de" },
      { phone: "12" },
      { email: "nobody" },
      { user_id: " " },
    ]) {
      const refused = await api.call("POST", `${path}/export`, asOwner(body));
      assert.equal(refused.status, 400, JSON.stringify(body));
    }
  });
});
