/**
 * Measures what a busy machine does not spoil: CPU time by role, bytes, and memory of roles that idle. The
 * roles are processes of their own, beside an embedded Postgres and a Redis.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bootstrap } from "#standalone/bootstrap.ts";
import { startEmbeddedPostgres } from "#standalone/embedded_postgres.ts";
import { endWithUs } from "#standalone/end_with_us.ts";
import { freePort } from "#standalone/ports.ts";
import { startTestRedis } from "#standalone/test_redis.ts";
import { migrate } from "#store/migrations.ts";
import { openSql, type Sql } from "#store/sql.ts";
import { inheritedEnvironment } from "../config.ts";
import { createAppClient } from "../kit/app_client.ts";
import { createManagementClient } from "../kit/management_client.ts";
import { familyUsage, processUsage } from "../kit/process_usage.ts";
import { threeNodes } from "../runs/run.ts";
import type { Cost, CostName } from "./costs.ts";

const runs = 2000;
const warmUpRuns = 300;
const startsAtOnce = 16;
const idleMs = 3000;
const readyMsMax = 60_000;
const endMsMax = 120_000;

const roles = {
  gateway: { script: "gateway/main.ts", port: "GATEWAY_PORT" },
  api: { script: "api/process/main.ts", port: "API_PORT" },
  worker: { script: "api/process/worker_main.ts", port: "WORKER_PORT" },
} as const;
type Role = keyof typeof roles;

/** @throws Error without redis-server, or when a role does not start */
export async function measureCosts(report: (line: string) => void): Promise<Partial<Record<CostName, Cost>>> {
  const dataDir = join(tmpdir(), `frontdesk-capacity-${randomBytes(6).toString("hex")}`);
  const closers: (() => unknown)[] = [() => rm(dataDir, { recursive: true, force: true })];
  try {
    report("starting Postgres, Redis and the roles");
    const postgres = await startEmbeddedPostgres({ dataDir });
    closers.push(() => postgres.stop());
    const redis = await startTestRedis();
    if (!redis) throw new Error("Cannot measure: expected redis-server on the PATH");
    closers.push(() => redis.stop());
    const sql = openSql({ databaseUrl: postgres.url, connectionsMax: 3, statementMsMax: endMsMax });
    closers.push(() => sql.end());
    await migrate(sql);
    const ports = { GATEWAY_PORT: await freePort(), API_PORT: await freePort(), WORKER_PORT: await freePort() };
    const gatewayUrl = `http://127.0.0.1:${ports.GATEWAY_PORT}`;
    const apiUrl = `http://127.0.0.1:${ports.API_PORT}`;
    const { file } = await bootstrap({ sql, gatewayUrl, apiUrl, dataDir });
    const environment = {
      ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      DATA_DIR: dataDir,
      METRICS_PORT: "0",
      MEDIA_THREADS: "2",
      SHUTDOWN_DELAY_S: "0",
      ...Object.fromEntries(
        ["INTERNAL_SECRET", "ENCRYPTION_KEY", "JWT_SECRET"].map((name) => [name, randomBytes(16).toString("hex")]),
      ),
    };
    const pids = {} as Record<Role, number>;
    for (const name of ["api", "worker", "gateway"] as const) {
      const child = start(roles[name].script, environment);
      closers.push(() => stop(child));
      await ready(child, `http://127.0.0.1:${ports[roles[name].port]}/readyz`);
      pids[name] = child.pid ?? 0;
    }
    const memory = await idleMemory(pids, report);
    const client = createAppClient({ url: gatewayUrl, accessKey: file.access_key, connections: startsAtOnce });
    closers.push(() => client.close());
    const { pat, access_key, project_id } = file;
    const access = { baseUrl: apiUrl, token: pat, accessKey: access_key, projectId: project_id };
    const host = await createManagementClient(access).deployApp("Measured", threeNodes);
    const begin = async (count: number) => {
      let left = count;
      const next = async () => {
        while (left-- > 0) await client.start(host, { name: "you" });
      };
      await Promise.all(Array.from({ length: startsAtOnce }, next));
      await ended(sql);
    };
    report("warming up");
    await begin(warmUpRuns);
    report(`${runs} runs of three nodes`);
    const before = await usage(sql, pids);
    await begin(runs);
    const after = await usage(sql, pids);
    return costsOf({ before, after, memory, stored: await storedBytes(sql) });
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

type Usage = Record<Role | "postgres", number> & { walBytes: number };

/** CPU time so far in ms, and bytes of WAL. */
async function usage(sql: Sql, pids: Record<Role, number>): Promise<Usage> {
  const cpu = async (pid: number) => (await processUsage(pid))?.cpuMs ?? Number.NaN;
  const [row] = await sql<{ postmaster: number; wal: string }[]>`
    select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer as postmaster,
           pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal`;
  if (!row) throw new Error("Cannot measure: Postgres tells nothing of itself");
  return {
    gateway: await cpu(pids.gateway),
    api: await cpu(pids.api),
    worker: await cpu(pids.worker),
    postgres: (await familyUsage(row.postmaster))?.cpuMs ?? Number.NaN,
    walBytes: Number(row.wal),
  };
}

/** Of a run without its events, and of an event: tables with their indexes. */
async function storedBytes(sql: Sql): Promise<{ run: number; event: number }> {
  const [row] = await sql<{ run: number; event: number }[]>`
    select
      (pg_total_relation_size('run') + pg_total_relation_size('node_run'))::float8 / (select count(*) from run) as run,
      pg_total_relation_size('run_event')::float8 / (select count(*) from run_event) as event`;
  if (!row) throw new Error("Cannot measure: Postgres tells nothing of its tables");
  return row;
}

async function idleMemory(pids: Record<Role, number>, report: (line: string) => void): Promise<Record<Role, number>> {
  report("memory of roles that idle");
  await delay(idleMs);
  const of = async (pid: number) => (await processUsage(pid))?.rssBytes ?? Number.NaN;
  return { gateway: await of(pids.gateway), api: await of(pids.api), worker: await of(pids.worker) };
}

interface Measured {
  before: Usage;
  after: Usage;
  memory: Record<Role, number>;
  stored: { run: number; event: number };
}

function costsOf({ before, after, memory, stored }: Measured): Partial<Record<CostName, Cost>> {
  const measured = new Date().toISOString().slice(0, 10);
  const cost = (value: number, digits: number, unit: string): Cost => ({
    value: Number(value.toFixed(digits)),
    unit,
    measured,
    by: "npm run capacity -- --measure",
  });
  const cpu = (part: Role | "postgres") => cost((after[part] - before[part]) / runs, 2, "ms CPU/run");
  const idle = (role: Role, what = "") => cost(memory[role] / 1e6, 0, `MB idle${what}`);
  return {
    run_gateway_cpu: cpu("gateway"),
    run_api_cpu: cpu("api"),
    run_worker_cpu: cpu("worker"),
    run_postgres_cpu: cpu("postgres"),
    run_wal: cost((after.walBytes - before.walBytes) / runs, 0, "bytes/run"),
    run_storage: cost(stored.run, 0, "bytes/run"),
    event_storage: cost(stored.event, 0, "bytes/event"),
    gateway_memory: idle("gateway", ", two media threads"),
    api_memory: idle("api"),
    worker_memory: idle("worker"),
  };
}

/** Resolves when no run is under way. */
async function ended(sql: Sql): Promise<void> {
  const untilMs = performance.now() + endMsMax;
  for (;;) {
    const [row] = await sql<{ left: number }[]>`select count(*)::integer as left from run where ended_at is null`;
    if (row?.left === 0) return;
    if (performance.now() > untilMs) throw new Error(`Cannot measure: ${row?.left} runs did not end`);
    await delay(100);
  }
}

function start(script: string, environment: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, ["--import", "tsx", script], {
    cwd: new URL("../..", import.meta.url),
    env: { PATH: inheritedEnvironment.PATH, HOME: inheritedEnvironment.HOME, ...environment },
    stdio: ["ignore", "ignore", "inherit"],
  });
  endWithUs(child, "SIGKILL");
  return child;
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  const untilMs = performance.now() + readyMsMax;
  while (!(await fetch(url).catch(() => undefined))?.ok) {
    if (child.exitCode !== null || performance.now() > untilMs) throw new Error(`Cannot measure: ${url} is not ready`);
    await delay(50);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
