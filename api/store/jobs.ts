/**
 * Jobs in Postgres, on graphile-worker (which brings its own driver and pool). A job is a wake-up:
 * what is to be done, and by whom, stands in our own rows.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Logger as JobLogger, parseCronItems, type Runner, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { purgeInPortions } from "./purge.ts";
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

/** The queue's own statements are short: one that takes longer waits for something that does not come. */
const statementMsMax = 10_000;
/** Finished jobs are written together with those that finish so soon after. */
const finishedBatchMs = 20;
/** A queue that gave up because Postgres was away is started again this much later, until it stays. */
const restartMs = 1000;

/** Starts taking jobs, and goes on with it however often Postgres goes away. @throws Error when the first start fails */
export async function startJobs(options: JobsOptions): Promise<Jobs> {
  const pool = openPool(options);
  let runner = await startRunner(options, pool);
  const stopping = new AbortController();
  const kept = keepRunning();

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      await runner.promise.catch(() => undefined);
      if (stopping.signal.aborted) return;
      options.onLog("warning", "the job queue ended and is started again");
      await wait(restartMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      const started = await startRunner(options, pool).catch((error: unknown) => {
        options.onLog("warning", `the job queue did not start: ${String(error)}`);
      });
      if (started) runner = started;
    }
  }

  let stopped: Promise<void> | undefined;
  return {
    stop() {
      stopping.abort();
      // One that has ended by itself cannot be stopped any more; one that is being started is stopped after that.
      stopped ??= runner
        .stop()
        .catch(() => undefined)
        .then(() => kept)
        .then(() => runner.stop())
        .catch(() => undefined)
        .finally(() => pool.end());
      return stopped;
    },
  };
}

function startRunner(options: JobsOptions, pool: pg.Pool): Promise<Runner> {
  return run({
    pgPool: pool,
    concurrency: options.concurrency,
    noHandleSignals: true,
    taskList: Object.fromEntries(
      Object.entries(options.tasks).map(([name, task]) => [name, async (payload) => task(payload)]),
    ),
    parsedCronItems: parseCronItems(Object.entries(options.schedule).map(([task, match]) => ({ task, match }))),
    logger: new JobLogger(() => (level, message) => options.onLog(level, message)),
    // Finished jobs are written together; one by one, a failure of that would be a rejection that nobody handles.
    // Jobs are fetched one by one: what a local queue cannot give back to a Postgres that went away is another such
    // rejection, and what it held when the process was killed stays locked for `stuckAfterMs`.
    preset: { worker: { completeJobBatchDelay: finishedBatchMs, failJobBatchDelay: finishedBatchMs } },
  });
}

/**
 * The queue's connections. A pool of our own: the queue would not wait for its pool's end, and by then
 * nobody would listen to what Postgres says to connections that are still closing.
 */
function openPool({ databaseUrl, concurrency, onLog }: JobsOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: concurrency + 2,
    // Taking and finishing jobs does not wait for the disk. What a crash of Postgres forgets is done again:
    // runs and callbacks are claimed in rows of their own, so that this changes nothing; mail may come twice.
    options: `-c synchronous_commit=off -c statement_timeout=${statementMsMax} -c lock_timeout=${statementMsMax} -c idle_in_transaction_session_timeout=${statementMsMax}`,
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

/** Jobs that failed for good stay so long for whoever looks for the reason. */
const failedKeptMs = 30 * 24 * 60 * 60 * 1000;

/** Deletes jobs that nobody tries any more. */
export async function purgeFailedJobs({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  const before = new Date(now().getTime() - failedKeptMs);
  await purgeInPortions(
    (rowsMax) => sql`
      select done.id from graphile_worker.complete_jobs(array(
        select id from graphile_worker.jobs
        where attempts >= max_attempts and locked_at is null and updated_at < ${before} limit ${rowsMax})) done`,
  );
}
