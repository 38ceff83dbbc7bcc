/** What workers tell of runs: counted as they happen, and read from the queue that all of them share. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Registry } from "prom-client";
import { createRunMetrics } from "#runs/run_metrics.ts";
import { openSql } from "#store/sql.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "#test/kit/app_client.ts";
import { samplesIn } from "#test/kit/k8s/metric_samples.ts";

describe("the figures of a worker", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());

  it("tell of runs that wait, of their wait once a worker takes them, and of each commit", async () => {
    const { host } = await client.deploy(answering);
    const input = { question: "Late check-out?" };
    for (let i = 0; i < 3; i += 1) {
      const { status } = await client.call(host, "POST", "/v1/runs", { body: { input, background: true } });
      assert.equal(status, 202);
    }
    await api.sql`update graphile_worker._private_jobs set run_at = now() - interval '42 seconds'`;
    const before = await figuresOf(api);
    assert.equal(before.get('frontdesk_runs{status="pending"}'), 3);
    assert.equal(before.get("frontdesk_jobs_ready"), 3);
    assert.ok((before.get("frontdesk_jobs_oldest_seconds") ?? 0) >= 42);
    assert.equal(before.get('frontdesk_dead_rows{table="run"}') !== undefined, true);

    const worker = await startTestWorker(api);
    try {
      const { host: asking } = await client.deploy(approving);
      const run = await client.call(asking, "POST", "/v1/runs", { body: { input, stream: false } });
      assert.equal(run.status, 202, JSON.stringify(run.body));
      const underWay = () => api.sql`select 1 from run where status in ('pending', 'running')`;
      while ((await underWay()).length > 0) await new Promise((resolve) => setImmediate(resolve));
      const told = samplesIn(await worker.metrics.metrics());
      assert.equal(told.get("frontdesk_run_queue_wait_seconds_count"), 4);
      assert.ok((told.get("frontdesk_recorder_commit_seconds_count") ?? 0) > 0);
      assert.equal(told.get("frontdesk_recorder_unwritten_bytes"), 0);
      assert.equal(told.get("frontdesk_leases_lost_total"), 0);
      assert.equal(told.get("frontdesk_postgres_up"), 1);
      assert.equal(told.get("frontdesk_bus_up"), 1);
      assert.ok([...told.keys()].some((name) => name.startsWith('frontdesk_build_info{role="worker",version="')));
      assert.ok((told.get("process_resident_memory_bytes") ?? 0) > 0);
    } finally {
      await worker.close();
    }
  });

  it("say that Postgres is away, and leave out what only it knows", async () => {
    const sql = openSql({ databaseUrl: "postgres://nobody@127.0.0.1:1/none" });
    const registry = new Registry();
    createRunMetrics(registry, { sql, running: () => 7, unwrittenBytes: () => 0 });
    const told = samplesIn(await registry.metrics());
    assert.equal(told.get("frontdesk_postgres_up"), 0);
    assert.equal(told.get("frontdesk_runs_running"), 7);
    for (const name of told.keys()) assert.doesNotMatch(name, /^frontdesk_(jobs_|runs\{|dead_rows)/);
    await sql.end({ timeout: 1 });
  });
});

async function figuresOf({ sql }: ApiHarness) {
  const registry = new Registry();
  createRunMetrics(registry, { sql, running: () => 0, unwrittenBytes: () => 0 });
  return samplesIn(await registry.metrics());
}
