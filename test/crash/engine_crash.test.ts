/**
 * Postgres itself is killed, twice, while runs are accepted and executed. Claims and the job queue
 * do not wait for the disk: what a crash forgets of them must not be missed.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { RunEvent } from "#contracts/run_event.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#standalone/embedded_postgres.ts";
import { survivesLostConnection } from "#store/lost_connection.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, eventually, openAppClient } from "#test/kit/app_client.ts";
import { patienceMs } from "../kit/patience.ts";

const clientsAtOnce = 4;
/** Once so many runs were accepted, Postgres is killed. */
const killsAfter = [40];
const runsMin = 120;

/** The runner takes every rejection that nobody handles for a failure; the roles live on where a connection is lost. */
function surviveAsRolesDo(): void {
  const survives = survivesLostConnection(() => undefined);
  for (const judge of process.listeners("unhandledRejection")) {
    process.off("unhandledRejection", judge);
    process.on("unhandledRejection", (reason, promise) => {
      try {
        survives(reason);
      } catch {
        judge(reason, promise);
      }
    });
  }
}

describe("a Postgres that is killed", () => {
  const dataDir = join(tmpdir(), `frontdesk-crash-${randomBytes(6).toString("hex")}`);
  let postgres: EmbeddedPostgres;
  let api: ApiHarness;
  let client: AppClient;
  let worker: { close(): Promise<void> };

  before(async () => {
    surviveAsRolesDo();
    postgres = await startEmbeddedPostgres({ dataDir });
    process.env.TEST_DATABASE_URL = postgres.url;
    api = await openApiHarness();
    client = await openAppClient(api);
    worker = await startTestWorker(api);
  });
  after(async () => {
    await worker?.close().finally(() => api?.close().finally(() => postgres?.stop()));
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** kill -9, and a new start as soon as the old one's processes have let go of the folder. */
  async function killAndRestart(): Promise<void> {
    const cluster = join(realpathSync(join(dataDir, "postgres")), "data");
    process.kill(Number(readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n")[0]), "SIGKILL");
    await postgres.exited;
    const port = Number(new URL(postgres.url).port);
    await eventually(async () => {
      const again = await startEmbeddedPostgres({ dataDir, port }).catch(() => undefined);
      if (again) postgres = again;
      return again !== undefined;
    }, "Postgres starts again");
  }

  it("loses no run that was accepted, and tells nothing twice", { timeout: 3 * patienceMs }, async () => {
    const { host } = await client.deploy(answering, { policy: { max_concurrent_runs: 1000 } });
    const accepted: string[] = [];
    const killsLeft = [...killsAfter];
    let restarting: Promise<void> | undefined;
    const post = async () => {
      while (accepted.length < runsMin) {
        const body = { input: { question: `run ${accepted.length}` }, background: true };
        const answer = await client.call(host, "POST", "/v1/runs", { body }).catch(() => undefined);
        if (answer?.status === 202) accepted.push(answer.body.data.id);
        else await restarting;
        if (accepted.length >= (killsLeft[0] ?? Number.POSITIVE_INFINITY)) {
          killsLeft.shift();
          restarting = killAndRestart();
        }
      }
    };
    await Promise.all(Array.from({ length: clientsAtOnce }, post));
    assert.deepEqual(killsLeft, []);
    assert.equal(new Set(accepted).size, accepted.length);

    const unfinished = async () => {
      const rows = await api.sql<{ id: string }[]>`
        select id from run where id = any (${accepted}::uuid[]) and status <> 'succeeded'`;
      return rows.length;
    };
    await eventually(async () => (await unfinished()) === 0, "every accepted run is over");
    const rows = await api.sql<{ run_id: string; id: number; body: string }[]>`
      select run_id, id, body from run_event where run_id = any (${accepted}::uuid[]) order by run_id, id`;
    const byRun = new Map<string, RunEvent[]>(accepted.map((id) => [id, []]));
    for (const { run_id, body } of rows) byRun.get(run_id)?.push(JSON.parse(body));
    for (const [runId, events] of byRun) {
      assert.deepEqual(
        events.map(({ id }) => id),
        events.map((_, i) => i + 1),
        runId,
      );
      const completed = events.filter(({ type }) => type === "node.completed").map(({ node_id }) => node_id);
      assert.deepEqual(completed, ["in", "ask", "out"]);
      assert.equal(events.filter(({ type }) => type === "run.succeeded").length, 1);
      assert.equal(events.at(-1)?.type, "run.succeeded");
    }
  });
});
