/** What grows is deleted when it was kept long enough, a portion at a time. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { purgeExpiredCredentials } from "#identity/purge.ts";
import { purgeRuns } from "#runs/run_sweeper.ts";
import { purgeFailedJobs } from "#store/jobs.ts";
import { portionRows, purgeInPortions } from "#store/purge.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { purgeCalls } from "#voice/call_sweeper.ts";

const dayMs = 24 * 60 * 60 * 1000;

describe("a purge", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const inDays = (days: number) => ({ sql: api.sql, now: () => new Date(Date.now() + days * dayMs) });
  const countOf = async (table: string) =>
    (await api.sql<{ count: number }[]>`select count(*)::integer as count from ${api.sql(table)}`)[0]?.count;

  it("goes on until a portion is not full, and ends a round after its time", async () => {
    const asked: number[] = [];
    const portions = [portionRows, portionRows, 3];
    const total = await purgeInPortions(async (rowsMax) => {
      asked.push(rowsMax);
      return { count: portions.shift() ?? 0 };
    });
    assert.deepEqual([total, asked], [2 * portionRows + 3, [portionRows, portionRows, portionRows]]);
  });

  it("of runs takes each app's by its own retention, however many there are", async () => {
    const rows = 2 * portionRows + 7;
    const projectId = api.projectId;
    const workflow = await api.call("POST", "/v1/workflows", {
      token: api.owner.token,
      body: {
        name: "Echo",
        project_id: projectId,
        definition: {
          schema_version: 1,
          nodes: [
            { id: "in", type: "input" },
            { id: "out", type: "output", inputs: { answer: "done" } },
          ],
          edges: [{ from: "in", to: "out" }],
        },
      },
    });
    assert.equal(workflow.status, 201, JSON.stringify(workflow.body));
    const deploy = async (retention_days: number) => {
      const app = await api.call("POST", "/v1/apps", {
        token: api.owner.token,
        body: { name: "App", project_id: projectId, workflow_id: workflow.body.data.id, policy: { retention_days } },
      });
      assert.equal(app.status, 201, JSON.stringify(app.body));
      return app.body.data.id as string;
    };
    const [brief, lasting] = [await deploy(2), await deploy(30)];
    const { latest_version_id } = workflow.body.data;
    for (const app of [brief, lasting]) {
      await api.sql`
        with made as (
          insert into run
            (id, organization_id, project_id, app_id, workflow_version_id, status, origin, input, metadata, trace_id,
             timeout_s, created_at, ended_at, last_event_id)
          select gen_random_uuid(), ${api.owner.organizationId}, ${projectId}, ${app}, ${latest_version_id}, 'succeeded',
                 'run', '{}', '{}', gen_random_uuid(), 60, now(), now(), 1
          from generate_series(1, ${rows})
          returning id)
        insert into run_event (run_id, id, type, body, created_at) select id, 1, 'run.created', '{}', now() from made`;
    }
    await purgeRuns(inDays(3));
    const left = await api.sql`select app_id, count(*)::integer as count from run group by app_id`;
    assert.deepEqual([...left], [{ app_id: lasting, count: rows }]);
    assert.equal(await countOf("run_event"), rows);
    await purgeRuns(inDays(31));
    assert.deepEqual([await countOf("run"), await countOf("run_event")], [0, 0]);
  });

  it("of calls goes by what the organization says, and spares those that go on", async () => {
    const agent = await api.call("POST", "/v1/agents/voice/agents", {
      token: api.owner.token,
      body: { name: "Desk", project_id: api.projectId, config: { llm: { provider: "echo" } } },
    });
    assert.equal(agent.status, 201, JSON.stringify(agent.body));
    for (const state of ["ended", "expired", "in_progress", "reserved"]) {
      await api.sql`
        insert into call
          (id, organization_id, project_id, agent_id, state, secret_sha256, protocol, input_format, output_format,
           client_buffer_ms, variables, metadata, config_overrides, initial_messages, created_at, expires_at)
        values (gen_random_uuid(), ${api.owner.organizationId}, ${api.projectId}, ${agent.body.data.id}, ${state}, 'x',
                'voice.v1', '{}', '{}', 0, '{}', '{}', '{}', '[]', now(), now())`;
    }
    await purgeCalls(inDays(399));
    assert.equal(await countOf("call"), 4);
    const changed = await api.call("PATCH", "/v1/organizations/me", {
      token: api.owner.token,
      body: { call_retention_days: 90 },
    });
    assert.deepEqual([changed.status, changed.body.data.call_retention_days], [200, 90]);
    const member = { token: api.member.token, body: { call_retention_days: 90 } };
    assert.equal((await api.call("PATCH", "/v1/organizations/me", member)).status, 403);
    await purgeCalls(inDays(91));
    const left = await api.sql<{ state: string }[]>`select state from call order by state`;
    assert.deepEqual(
      left.map(({ state }) => state),
      ["in_progress", "reserved"],
    );
  });

  it("of attempts to sign in takes what a crowd of guesses left", async () => {
    const rows = portionRows + 5;
    await api.sql`
      insert into sign_in_attempt (key, attempts, window_ends_at)
      select 'minute ' || number, 1, now() from generate_series(1, ${rows}) number`;
    await purgeExpiredCredentials(inDays(1));
    assert.equal(await countOf("sign_in_attempt"), 0);
  });

  it("of jobs takes those that nobody tries any more, a month after the last time", async () => {
    await api.sql`select graphile_worker.add_job('nobody_knows', max_attempts := 1)`;
    await api.sql`update graphile_worker._private_jobs set attempts = 1`;
    await api.sql`select graphile_worker.add_job('to_be_tried')`;
    const left = async () => (await api.sql`select 1 from graphile_worker.jobs`).length;
    await purgeFailedJobs(inDays(29));
    assert.equal(await left(), 2);
    await purgeFailedJobs(inDays(31));
    assert.equal(await left(), 1);
  });
});
