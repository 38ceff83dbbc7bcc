/**
 * Cancels runs. A run that nobody executes ends here and now; one that is being executed is marked,
 * and its holder ends it with the events that belong to it.
 */
import type { NewRunEvent, RunEvent, RunUsage } from "#contracts/run_event.ts";
import { type AnySql, type Fragment, json, type Sql } from "#store/sql.ts";
import { noteTracesDue } from "#traces/trace_due.ts";
import { wakeWaiting } from "./engine/run_places.ts";
import { deliverCallbacksTask } from "./run_queue.ts";

export interface CanceledRuns {
  /** Their holders are to be told: `runControlTopic`, `canceled`. */
  marked: string[];
  /** Ended with this event, to be published. */
  ended: RunEvent[];
}

/** Inside a transaction. @param where a condition on `run`; runs that are over stay as they are */
export async function cancelRuns(
  sql: AnySql,
  where: Fragment,
  by: { reason?: string; by?: string },
  now: Date,
): Promise<CanceledRuns> {
  const rows = await sql<
    {
      id: string;
      status: string;
      last_event_id: number;
      app_id: string;
      session_id: string | null;
      usage: RunUsage | null;
      active_ms: number;
      cancel_reason: string | null;
      cancel_by: string | null;
    }[]
  >`
    select id, status, last_event_id, app_id, session_id, usage, active_ms, cancel_reason, cancel_by from run
    where ${where} and status in ('pending', 'running', 'awaiting_input')
    order by id for update`;
  const marked = rows.filter(({ status }) => status === "running").map(({ id }) => id);
  await sql`
    update run set cancel_requested_at = coalesce(cancel_requested_at, ${now}),
      cancel_reason = coalesce(cancel_reason, ${by.reason ?? null}), cancel_by = coalesce(cancel_by, ${by.by ?? null})
    where id = any (${marked}::uuid[])`;
  const ended: RunEvent[] = [];
  for (const row of rows) {
    if (row.status === "running") continue;
    const usage = row.usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    // A request that was noted before, and not followed, keeps its words.
    const words = { ...by, ...canceledBy(row) };
    const canceled = {
      type: "run.canceled",
      data: { ...words, usage, duration_ms: row.active_ms },
    } satisfies NewRunEvent;
    const event: RunEvent = { id: row.last_event_id + 1, run_id: row.id, created_at: now.toISOString(), ...canceled };
    await sql`
      update run set status = 'canceled', ended_at = ${now}, usage = ${json(sql, usage)}, last_event_id = ${event.id},
        epoch = epoch + 1, wake_at = null, lease_until = null,
        cancel_requested_at = coalesce(cancel_requested_at, ${now}),
        cancel_reason = ${words.reason ?? null}, cancel_by = ${words.by ?? null}
      where id = ${row.id}`;
    await sql`
      insert into run_event (run_id, id, type, body, created_at)
      values (${row.id}, ${event.id}, ${event.type}, ${JSON.stringify(event)}, ${now})`;
    await sql`update input_request set status = 'canceled', resolved_at = ${now} where run_id = ${row.id} and status = 'pending'`;
    await sql`
      select graphile_worker.add_job(
        ${deliverCallbacksTask}, json_build_object('run_id', ${row.id}::uuid), job_key := 'callbacks:' || ${row.id})
      where exists (select 1 from callback where run_id = ${row.id} and attempted_at is null)`;
    ended.push(event);
  }
  const left = rows.filter(({ status }) => status !== "running");
  if (left.length > 0)
    await noteTracesDue(
      sql,
      "run",
      left.map(({ id }) => id),
    );
  await wakeWaiting(
    sql,
    left.map(({ app_id, session_id }) => ({ appId: app_id, worked: false, sessionId: session_id })),
  );
  return { marked, ended };
}

/**
 * Ends runs that were marked while somebody executed them, and that nobody executes any more: their
 * holder parked them, or gave them back, before it heard of it.
 */
export async function cancelMarked(sql: Sql, where: Fragment, now: Date): Promise<CanceledRuns> {
  const marked = sql`${where} and cancel_requested_at is not null and status in ('pending', 'awaiting_input')`;
  // Mostly there is none, and then there is nothing to lock.
  const [one] = await sql`select 1 from run where ${marked} limit 1`;
  if (!one) return { marked: [], ended: [] };
  return sql.begin((transaction) => cancelRuns(transaction, marked, {}, now));
}

export function canceledBy(row: { cancel_reason: string | null; cancel_by: string | null }): {
  reason?: string;
  by?: string;
} {
  return {
    ...(row.cancel_reason !== null && { reason: row.cancel_reason }),
    ...(row.cancel_by !== null && { by: row.cancel_by }),
  };
}
