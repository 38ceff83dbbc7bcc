/**
 * Wakes workers for runs. A job says "look at this run"; whether there is something to do is
 * decided by the claim. So a job too many is harmless, and one that got lost is added again by the sweeper.
 */
import type { AnySql, Fragment } from "#store/sql.ts";

export const executeRunTask = "execute_run";
export const deliverCallbacksTask = "deliver_callbacks";

/** Bus topic by which a run's holder hears of cancels and answers at once, instead of at its next beat. */
export const runControlTopic = "run_control";
export interface RunControl {
  run_id: string;
  is: "canceled" | "answered";
}

/** In the transaction of the change that gives the runs something to do. The key keeps one job for each generation. */
export async function enqueueRuns(sql: AnySql, runs: readonly { id: string; generation: number }[]): Promise<void> {
  if (runs.length === 0) return;
  await sql`
    select ${runJob(sql)}
    from unnest(${runs.map(({ id }) => id)}::uuid[], ${runs.map(({ generation }) => generation)}::integer[])
      as run (id, generation)`;
}

/** Adds the job of a row with `id` and `generation`, as a column of a `select`. */
export function runJob(sql: AnySql): Fragment {
  return sql`graphile_worker.add_job(
    ${executeRunTask}, json_build_object('run_id', id), job_key := 'run:' || id || ':' || generation, max_attempts := 3)`;
}

/** Of these runs, those that wait although somebody has answered: the answer came while they were being parked. */
export async function answeredWhileParking(sql: AnySql, runs: Fragment): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from run where ${runs} and status = 'awaiting_input' and exists (
      select 1 from input_request request
      where request.run_id = run.id and request.status in ('resolved', 'expired') and not request.taken)`;
  return rows.map(({ id }) => id);
}

/**
 * Makes parked runs pending again, with a new generation and a job each. Runs that are not parked
 * stay as they are.
 */
export async function unparkRuns(sql: AnySql, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return;
  const runs = await sql<{ id: string; generation: number }[]>`
    with parked as materialized (
      select id from run
      where id = any (${runIds as string[]}::uuid[]) and (status = 'awaiting_input' or (status = 'pending' and wake_at is not null))
      order by id for update)
    update run set status = 'pending', wake_at = null, generation = generation + 1
    from parked where run.id = parked.id
    returning run.id, run.generation`;
  await enqueueRuns(sql, runs);
}
