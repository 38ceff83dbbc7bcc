/**
 * Jobs in Postgres, on graphile-worker (which brings its own driver and pool). A job is a wake-up:
 * what is to be done, and by whom, stands in our own rows.
 */
import { Logger as JobLogger, parseCronItems, run, runMigrations } from "graphile-worker";
import pg from "pg";
import type { Sql } from "./sql.ts";

export interface JobsOptions {
  databaseUrl: string;
  /** Task by name. A task is short: well below `stuckAfterMs`. */
  tasks: Record<string, (payload: unknown) => Promise<void>>;
  /** Cron lines (minute, hour, day, month, weekday; UTC) by task name. */
  schedule: Record<string, string>;
  /** Jobs at work at once in this process. */
  concurrency: number;
  onLog(level: "error" | "warning" | "info" | "debug", message: string): void;
}

export interface Jobs {
  /** Lets running jobs finish, then releases the queue's own connections. Call it before Postgres stops. */
  stop(): Promise<void>;
}

/** A job locked for longer belongs to a worker that died; the queue itself would wait for hours. */
const stuckAfterMs = 5 * 60 * 1000;

/** Creates the queue's schema when it is missing, so that jobs can be added before any worker has started. */
export async function prepareJobs(databaseUrl: string): Promise<void> {
  await runMigrations({ connectionString: databaseUrl, logger: new JobLogger(() => () => undefined) });
}

/** Starts taking jobs. */
export async function startJobs(options: JobsOptions): Promise<Jobs> {
  const pool = openPool(options);
  const runner = await run({
    pgPool: pool,
    concurrency: options.concurrency,
    noHandleSignals: true,
    taskList: Object.fromEntries(
      Object.entries(options.tasks).map(([name, task]) => [name, async (payload) => task(payload)]),
    ),
    parsedCronItems: parseCronItems(Object.entries(options.schedule).map(([task, match]) => ({ task, match }))),
    logger: new JobLogger(() => (level, message) => options.onLog(level, message)),
  });
  // Without a listener a failed pool would take the process down; `stop` meets the same failure.
  runner.promise.catch(() => undefined);
  let stopped: Promise<void> | undefined;
  return {
    stop() {
      stopped ??= runner.stop().finally(() => pool.end());
      return stopped;
    },
  };
}

/**
 * The queue's connections. A pool of our own: the queue would not wait for its pool's end, and by then
 * nobody would listen to what Postgres says to connections that are still closing.
 */
function openPool({ databaseUrl, concurrency, onLog }: JobsOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: concurrency + 2,
    // Taking and finishing jobs does not wait for the disk: what a crash of the database forgets is done again.
    options: "-c synchronous_commit=off",
  });
  const onError = (error: Error) => onLog("warning", `a connection of the job queue failed: ${error.message}`);
  pool.on("error", onError);
  pool.on("connect", (client) => client.on("error", onError));
  return pool;
}

/** Makes jobs of dead workers available again. Safe to run in every worker. */
export async function releaseStuckJobs(sql: Sql, now: Date): Promise<void> {
  const stuckBefore = new Date(now.getTime() - stuckAfterMs);
  await sql`
    select graphile_worker.force_unlock_workers(array_agg(distinct locked_by))
    from graphile_worker.jobs
    where locked_at < ${stuckBefore}
    having count(*) > 0`;
}
