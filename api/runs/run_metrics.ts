/**
 * Figures of runs for Prometheus. Those of a worker itself are counted as they happen; those of the
 * queue, which all workers share, are read from Postgres when they are asked for: take their `max`,
 * never their sum.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Sql } from "#store/sql.ts";
import { deadlineAfter, within } from "./engine/deadline.ts";

/** What the engine tells as it works. */
export interface RunMetrics {
  /** A run was claimed for the first time, so long after it was created. */
  claimed(waitS: number): void;
  /** A group commit took so long, whether it succeeded or not. */
  committed(durationS: number): void;
  /** A run went on elsewhere although this worker was at it. */
  lost(): void;
}

export interface RunMetricsSources {
  sql: Sql;
  running(): number;
  unwrittenBytes(): number;
}

/** Two scrapes within this share what was read. */
const readAgainMs = 2000;
const readMsMax = 2000;

export function createRunMetrics(registry: Registry, sources: RunMetricsSources): RunMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("frontdesk_runs_running", "Runs that this worker executes", sources.running);
  gauge("frontdesk_recorder_unwritten_bytes", "Noted by runs and not yet durable", sources.unwrittenBytes);
  exportQueue(registry, sources.sql);

  const waits = new Histogram({
    name: "frontdesk_run_queue_wait_seconds",
    help: "From a run's creation to its first claim",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
    registers,
  });
  const commits = new Histogram({
    name: "frontdesk_recorder_commit_seconds",
    help: "Group commits of what runs noted",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  });
  const losses = new Counter({
    name: "frontdesk_leases_lost_total",
    help: "Runs whose lease ran out, or was taken over, while this worker executed them",
    registers,
  });
  return {
    claimed: (waitS) => waits.observe(Math.max(0, waitS)),
    committed: (durationS) => commits.observe(durationS),
    lost: () => losses.inc(),
  };
}

interface QueueFigures {
  runs: { status: string; count: number }[];
  ready: number;
  oldestS: number;
  deadRows: { table_name: string; count: number }[];
}

const liveStatuses = ["pending", "running", "awaiting_input"] as const;

function exportQueue(registry: Registry, sql: Sql): void {
  const registers = [registry];
  let read: { atMs: number; figures: Promise<QueueFigures | undefined> } | undefined;
  /** Undefined while Postgres does not answer: the scrape then tells all the rest. */
  const figures = () => {
    const nowMs = performance.now();
    if (!read || nowMs - read.atMs > readAgainMs) {
      read = { atMs: nowMs, figures: within(deadlineAfter(readMsMax), readQueue(sql)).catch(() => undefined) };
    }
    return read.figures;
  };
  /** Shows nothing where nothing is known. */
  const shared = (
    name: string,
    help: string,
    labelNames: string[],
    show: (gauge: Gauge, known: QueueFigures) => void,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        const known = await figures();
        // A gauge without labels is 0 after `reset`; only `remove` leaves it out.
        if (labelNames.length > 0) this.reset();
        else this.remove();
        if (known) show(this, known);
      },
    });
  new Gauge({
    name: "frontdesk_postgres_up",
    help: "1 when Postgres answered this worker within two seconds, otherwise 0",
    registers,
    async collect() {
      this.set((await figures()) ? 1 : 0);
    },
  });
  shared("frontdesk_runs", "Runs that are not over, in all, by status", ["status"], (gauge, { runs }) => {
    for (const status of liveStatuses) gauge.set({ status }, runs.find((row) => row.status === status)?.count ?? 0);
  });
  shared("frontdesk_jobs_ready", "Jobs that wait for a worker, in all", [], (gauge, { ready }) => gauge.set(ready));
  shared("frontdesk_jobs_oldest_seconds", "How long the oldest of them has waited", [], (gauge, { oldestS }) =>
    gauge.set(oldestS),
  );
  shared("frontdesk_dead_rows", "Rows that vacuum has to remove, by table", ["table"], (gauge, { deadRows }) => {
    for (const { table_name, count } of deadRows) gauge.set({ table: table_name }, count);
  });
}

async function readQueue(sql: Sql): Promise<QueueFigures> {
  const [runs, jobs, deadRows] = await Promise.all([
    sql<{ status: string; count: number }[]>`
      select status, count(*)::integer as count from run
      where status in ('pending', 'running', 'awaiting_input') group by status`,
    sql<{ ready: number; oldest_s: number }[]>`
      select count(*)::integer as ready, coalesce(extract(epoch from now() - min(run_at)), 0)::float8 as oldest_s
      from graphile_worker.jobs where locked_at is null and attempts < max_attempts and run_at <= now()`,
    sql<{ table_name: string; count: number }[]>`
      select relname as table_name, n_dead_tup::float8 as count from pg_stat_user_tables
      where (schemaname = 'graphile_worker' and relname = '_private_jobs')
         or (schemaname = current_schema() and relname in ('run', 'node_run'))`,
  ]);
  return { runs, ready: jobs[0]?.ready ?? 0, oldestS: jobs[0]?.oldest_s ?? 0, deadRows };
}
