/**
 * A run outlives each of the processes that bring it to its clients: worker, api, gateway and Redis are
 * killed one after the other, each in the middle of what the run says, before clients that are cut off
 * at every event.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { bootstrap } from "#standalone/bootstrap.ts";
import { freePort } from "#standalone/ports.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type RoleProcess, sharedSecrets, startRole } from "#test/kit/role_process.ts";
import {
  type AppAddress,
  askApp,
  assertWhole,
  followTogether,
  jsonOf,
  type SeenEvent,
} from "#test/kit/runs/run_followers.ts";
import { isWhole, patienceMs } from "../kit/patience.ts";

const skip = spawnSync("redis-server", ["--version"]).status === 0 ? false : "no redis-server on this machine";

const clients = 8;
const speakers = 8;
const wordsEach = isWhole ? 70 : 35;
/** Of a stage, before its victim is killed. */
const wordsBeforeKill = 2 * wordsEach;
/** What is said takes as long in the short form: time enough to be killed in. */
const stageS = 3;
/** From when the killed one, or who stands in for it, could have gone on. */
const takeoverMsMax = 15_000;

/** One a stage of the run, in this order. */
const victims = ["worker", "api", "gateway", "redis"] as const;
type Victim = (typeof victims)[number];
/** Words, and what tells of the nodes. */
const eventsMin = victims.length * speakers * wordsEach;

/** Two workers: what one leaves the other takes over. */
const files = {
  worker_1: "api/process/worker_main.ts",
  worker_2: "api/process/worker_main.ts",
  api: "api/process/main.ts",
  gateway: "gateway/main.ts",
} as const;
type Role = keyof typeof files;
const listens = /"msg":"(api listens|worker runs|gateway listens)"/;

describe(`a run of ${eventsMin} events over Redis`, { skip }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let environment: Record<string, string>;
  let redisPort: number;
  let redis: ChildProcess | undefined;
  let app: AppAddress;
  const roles = new Map<Role, RoleProcess>();
  const killedAtMs: number[] = [];
  const backAtMs: number[] = [];

  before(async () => {
    database = await createTestDatabase();
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-durability-"));
    redisPort = await freePort();
    const [gatewayPort, apiPort] = [await freePort(), await freePort()];
    environment = {
      ...sharedSecrets,
      DATABASE_URL: database.url,
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      DATA_DIR: dataDir,
      GATEWAY_PORT: String(gatewayPort),
      API_PORT: String(apiPort),
      WORKER_PORT: "0",
      MEDIA_THREADS: "1",
    };
    await startRedis();
    const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
    const apiUrl = `http://127.0.0.1:${apiPort}`;
    const { file } = await bootstrap({ sql: database.productSql, gatewayUrl, apiUrl, dataDir });
    await Promise.all((Object.keys(files) as Role[]).map(start));
    const hostname = await deploy(gatewayUrl, file);
    app = { port: gatewayPort, host: hostname, accessKey: file.access_key };
  });
  after(async () => {
    await Promise.all([...roles.values()].map((role) => role.stop("SIGKILL")));
    if (redis) await killed(redis);
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(role: Role): Promise<void> {
    const started = startRole(files[role], environment);
    roles.set(role, started);
    await started.until(listens);
  }

  async function startRedis(): Promise<void> {
    const options = ["--port", String(redisPort), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "ignore"] });
    redis = child;
    let said = "";
    for await (const chunk of child.stdout) {
      said += chunk;
      if (said.includes("Ready to accept connections")) break;
    }
    child.stdout.resume();
  }

  async function killAndRestart(victim: Victim, runId: string): Promise<void> {
    const role = victim === "worker" ? await holderOf(runId) : victim;
    killedAtMs.push(performance.now());
    if (role === "redis") {
      if (redis) await killed(redis);
      await startRedis();
    } else {
      await roles.get(role)?.stop("SIGKILL");
      await start(role);
    }
    backAtMs.push(performance.now());
  }

  /** Of the workers the one that holds the run. */
  async function holderOf(runId: string): Promise<Role> {
    const [run] = await database.sql<{ pid: string }[]>`
      select split_part(worker_id, ':', 2) as pid from run where id = ${runId}`;
    const [role] = [...roles].find(([, { child }]) => String(child.pid) === run?.pid) ?? [];
    assert.ok(role, `no worker of process ${run?.pid}`);
    return role;
  }

  it("shows each event exactly once, in order, to clients cut at every event, whoever dies", {
    timeout: 3 * patienceMs,
  }, async ({ signal }) => {
    const created = await jsonOf(await askApp(app, "POST", "/v1/runs", { body: { background: true } }));
    assert.equal(created.status, 202);
    const runId = created.data.id;

    const wordsOf = victims.map(() => 0);
    let restarted: Promise<void> = Promise.resolve();
    const answered: Promise<void>[] = [];
    /** Kills a stage's victim while it speaks; goes on to the next stage when the victim is back. */
    const watch = ({ type, nodeId = "" }: SeenEvent) => {
      const stage = Number(/_(\d)$/.exec(nodeId)?.[1] ?? Number.NaN);
      const victim = victims[stage];
      if (!victim) return;
      if (type === "content.delta") {
        wordsOf[stage] = (wordsOf[stage] ?? 0) + 1;
        if (wordsOf[stage] !== wordsBeforeKill) return;
        restarted = killAndRestart(victim, runId);
        // Awaited before the next answer; not where the test is over before.
        restarted.catch(() => undefined);
      }
      if (type === "input.requested") answered.push(restarted.then(() => approve(runId, signal)));
    };
    const everything = await followTogether(app, runId, { count: clients, onEvent: watch, signal });
    await Promise.all(answered);

    for (const seen of everything) {
      assertWhole(seen);
      assert.ok(seen.length >= eventsMin, `${seen.length} events`);
      assert.equal(seen.at(-1)?.type, "run.succeeded");
    }
    assert.equal(killedAtMs.length, victims.length);
    const [first = []] = everything;
    for (const [i, killedMs] of killedAtMs.entries()) {
      const next = first.find(({ atMs }) => atMs > killedMs + 50);
      const lateMs = (next?.atMs ?? Number.POSITIVE_INFINITY) - (backAtMs[i] ?? 0);
      assert.ok(lateMs < takeoverMsMax, `${victims[i]}: ${lateMs} ms after it was back`);
    }
    const taken = first.find(({ type, atMs }) => type === "run.started" && atMs > (killedAtMs[0] ?? 0));
    assert.ok(taken && taken.atMs - (backAtMs[0] ?? 0) < takeoverMsMax);
  });

  /** Until somebody is there to take it: the same answer twice is one answer. */
  async function approve(runId: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const status = await askApp(app, "GET", `/v1/runs/${runId}`)
        .then(async (response) => {
          const run = (await jsonOf(response)).data as unknown as { input_requests: { id: string }[] };
          const responses = run.input_requests.map(({ id }) => ({ input_request_id: id, decision: "approve" }));
          const answer = await askApp(app, "POST", `/v1/runs/${runId}/resume`, { body: { responses } });
          answer.resume();
          await once(answer, "end");
          return answer.statusCode;
        })
        .catch(() => undefined);
      if (status === 200) return;
      await wait(100);
    }
  }
});

async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** An app of one stage a victim: models that speak side by side, each word an event, then a person's approval. */
async function deploy(url: string, file: { pat: string; project_id: string }): Promise<string> {
  const reply = Array.from({ length: wordsEach }, (_, i) => `word${i}`).join(" ");
  const config = {
    model: "scripted",
    options: { replies: [reply], tokens_per_s: wordsEach / stageS },
    messages: [{ role: "user", template: "x" }],
  };
  const nodes: object[] = [{ id: "in", type: "input" }];
  const edges: object[] = [];
  for (const stage of victims.keys()) {
    const before = stage === 0 ? { from: "in" } : { from: `ok_${stage - 1}`, handle: "approved" };
    nodes.push({ id: `ok_${stage}`, type: "approval", config: { prompt: "On?" }, inputs: {} });
    for (let speaker = 0; speaker < speakers; speaker += 1) {
      const id = `say_${speaker}_${stage}`;
      nodes.push({ id, type: "llm", config });
      edges.push({ ...before, to: id }, { from: id, to: `ok_${stage}` });
    }
  }
  nodes.push({ id: "out", type: "output", inputs: {} });
  edges.push({ from: `ok_${victims.length - 1}`, handle: "approved", to: "out" });

  const post = async (path: string, body: object) => {
    const answer = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${file.pat}`, "content-type": "application/json" },
      body: JSON.stringify({ project_id: file.project_id, ...body }),
    });
    const json = (await answer.json()) as { data: { id: string; hostname: string } };
    assert.equal(answer.status, 201, JSON.stringify(json));
    return json.data;
  };
  const workflow = await post("/v1/workflows", { name: "Stages", definition: { schema_version: 1, nodes, edges } });
  return (await post("/v1/apps", { name: "Stages", workflow_id: workflow.id })).hostname;
}
