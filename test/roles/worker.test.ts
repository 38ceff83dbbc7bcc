import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startWorker } from "#api/worker.ts";
import { silentLogger } from "#http/logger.ts";
import { releaseStuckJobs } from "#store/jobs.ts";
import { type ApiHarness, openApiHarness, workerMail } from "#test/kit/api_harness.ts";

describe("the worker", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const config = () => ({
    bindAddress: "127.0.0.1",
    workerPort: 0,
    databaseUrl: api.databaseUrl,
    encryptionKey: "encryption-key-of-tests",
    ...workerMail,
    allowPrivateAddresses: false,
  });

  it("answers for its health, makes jobs of dead workers available again, and releases every connection", async () => {
    const worker = await startWorker({ config: config(), sql: api.sql, bus: api.bus, logger: silentLogger });
    const ready = await fetch(`${worker.url}/readyz`);
    assert.deepEqual([ready.status, await ready.json()], [200, { status: "ready" }]);

    await api.sql`select graphile_worker.add_job('nobody_does_this')`;
    const lockedBy = async (lockedAt: string) => {
      await api.sql`
        update graphile_worker._private_jobs set locked_at = now() - ${lockedAt}::interval, locked_by = 'dead'`;
      await releaseStuckJobs(api.sql, new Date());
      const [job] = await api.sql<{ locked_by: string | null }[]>`
        select locked_by from graphile_worker.jobs where task_identifier = 'nobody_does_this'`;
      return job?.locked_by;
    };
    assert.equal(await lockedBy("1 minute"), "dead");
    assert.equal(await lockedBy("6 minutes"), null);

    await worker.close();
    await assert.rejects(fetch(`${worker.url}/readyz`));
    const others = await api.sql`
      select application_name, query from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'frontdesk'`;
    assert.deepEqual([...others], []);
  });

  it("closes a lost call by itself when it starts", async () => {
    const agent = await api.call("POST", "/v1/agents/voice/agents", {
      token: api.owner.token,
      body: { name: "Desk", project_id: api.projectId, config: {} },
    });
    const reserved = await api.call("POST", `/v1/agents/voice/agents/${agent.body.data.id}/calls/websocket`, {
      token: api.owner.token,
    });
    const callId = reserved.body.data.call_id;
    await api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id: "dead" });
    await api.sql`update call set heartbeat_at = now() - interval '1 minute' where id = ${callId}`;

    let noteSwept: () => void = () => undefined;
    const swept = new Promise<void>((resolve) => {
      noteSwept = resolve;
    });
    const warn = (_fields: object, text: string) => {
      if (text.startsWith("closed calls")) noteSwept();
    };
    const logger = { ...silentLogger, warn };
    const worker = await startWorker({ config: config(), sql: api.sql, bus: api.bus, logger });
    await swept;
    await worker.close();
    const { body } = await api.call("GET", `/v1/agents/voice/calls/${callId}`, { token: api.owner.token });
    assert.deepEqual([body.data.state, body.data.end_reason], ["ended", "error"]);
  });
});
