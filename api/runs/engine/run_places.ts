/**
 * Who waits for whom: runs of a full app for a place, runs of a session for the one before them. A
 * refused run says so in its row and is claimed once more after that; who ends a run looks for such rows
 * after its end is durable. So one of the two always sees the other, in whatever workers they are.
 */
import type { AnySql } from "#store/sql.ts";
import { enqueueRuns } from "../run_queue.ts";

/** What a run has left: a place of its app where it worked, and its session where it has ended. */
export interface FreedPlace {
  appId: string;
  worked: boolean;
  /** Null for one that goes on later, and for one without a session. */
  sessionId: string | null;
}

/** Notes that a run could not be claimed. Undefined for one that is not pending: somebody has it, or it is over. */
export async function noteWaiting(
  sql: AnySql,
  runId: string,
): Promise<{ appId: string; waitsFor: "place" | "session" } | undefined> {
  const [row] = await sql<{ app_id: string; waits_for: "place" | "session" }[]>`
    update run
    set waits_for = case
      when session_id is not null and exists (
        select 1 from run other
        where other.app_id = run.app_id and other.session_id = run.session_id and other.id <> run.id
          and (other.created_at, other.id) < (run.created_at, run.id)
          and other.status in ('pending', 'running', 'awaiting_input')) then 'session'
      else 'place' end
    where id = ${runId} and status = 'pending' and wake_at is null
    returning app_id, waits_for`;
  return row && { appId: row.app_id, waitsFor: row.waits_for };
}

/** Wakes a run for each place, the oldest first. Those that another worker wakes at this moment are left to it. */
export async function wakeWaiting(sql: AnySql, freed: readonly FreedPlace[]): Promise<void> {
  const apps = freed.filter(({ worked }) => worked).map(({ appId }) => appId);
  const sessions = freed.filter(({ sessionId }) => sessionId !== null);
  if (apps.length === 0 && sessions.length === 0) return;
  const runs = await sql<{ id: string; generation: number }[]>`
    with freed as (
      select app_id, count(*) as places from unnest(${apps}::uuid[]) as place (app_id) group by app_id),
    next_of_app as (
      select waiting.id from freed cross join lateral (
        select id from run where app_id = freed.app_id and status = 'pending' and waits_for = 'place'
        order by created_at limit freed.places for update skip locked) waiting),
    next_of_session as (
      select waiting.id
      from unnest(
        ${sessions.map(({ appId }) => appId)}::uuid[], ${sessions.map(({ sessionId }) => sessionId)}::text[]
      ) as place (app_id, session_id)
      cross join lateral (
        select id from run
        where app_id = place.app_id and session_id = place.session_id and status = 'pending' and waits_for = 'session'
        order by created_at limit 1 for update skip locked) waiting)
    update run set waits_for = null
    where id in (select id from next_of_app union select id from next_of_session)
    returning id, generation`;
  await enqueueRuns(sql, runs);
}
