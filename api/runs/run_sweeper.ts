/**
 * Finds runs that nobody looks after: a holder that died, a job that got lost, a moment that has come,
 * a request that nobody answered. Runs in every worker; any number of rounds at once are harmless.
 */
import type { Bus } from "#bus/bus.ts";
import { purgeInPortions } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";
import { cancelMarked } from "./run_cancel.ts";
import { publishCanceled, tellHolder } from "./run_news.ts";
import { answeredWhileParking, enqueueRuns, unparkRuns } from "./run_queue.ts";

/** A pending run without a worker for this long has lost its job, or waits for a place. */
const forgottenMs = 2000;
const batchMax = 500;
/** Of one app's waiting runs this many are looked at in a round: its backlog delays nobody else's. */
const perAppMax = 20;

export interface SweptRuns {
  orphaned: number;
  woken: number;
  expired: number;
}

export async function sweepRuns(deps: { sql: Sql; bus: Bus; now(): Date }): Promise<SweptRuns> {
  const { sql } = deps;
  const now = deps.now();
  const orphaned = await sql<{ id: string; generation: number }[]>`
    update run set generation = generation + 1
    where id in (select id from run where status = 'running' and lease_until < ${now} limit ${batchMax} for update skip locked)
      and status = 'running' and lease_until < ${now}
    returning id, generation`;
  await enqueueRuns(sql, orphaned);
  publishCanceled(deps.bus, await cancelMarked(sql, sql`true`, now));
  const expired = await expireRequests(sql, now);
  const answered = await answeredWhileParking(sql, sql`true`);
  const due = await sql<{ id: string }[]>`
    select id from run where wake_at <= ${now} and status in ('pending', 'awaiting_input') limit ${batchMax}`;
  await unparkRuns(sql, [...new Set([...expired, ...answered, ...due.map(({ id }) => id)])]);
  for (const run_id of expired) tellHolder(deps.bus, { run_id, is: "answered" });
  const forgotten = await sql<{ id: string; generation: number }[]>`
    select waiting.id, waiting.generation
    from (select distinct app_id from run where status = 'pending') app
    cross join lateral (
      select id, generation from run
      where app_id = app.app_id and status = 'pending' and wake_at is null
        and created_at < ${new Date(now.getTime() - forgottenMs)}
      order by created_at limit ${perAppMax}) waiting
    limit ${batchMax}`;
  await enqueueRuns(sql, forgotten);
  return { orphaned: orphaned.length, woken: due.length, expired: expired.length };
}

/** Unanswered requests follow their node's rule from here on. @returns their runs */
async function expireRequests(sql: Sql, now: Date): Promise<string[]> {
  const rows = await sql<{ run_id: string }[]>`
    update input_request set status = 'expired', resolved_at = ${now}
    where id in (
      select id from input_request where status = 'pending' and expires_at <= ${now}
      order by expires_at limit ${batchMax} for update skip locked)
    returning run_id`;
  return [...new Set(rows.map(({ run_id }) => run_id))];
}

/** Removes what was kept long enough: runs with their events, and keys of repeated requests. */
export async function purgeRuns({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  await purgeInPortions(
    (rowsMax) => sql`
      delete from run where id in (
        select over.id
        from app cross join lateral (
          select id from run
          where app_id = app.id
            and ended_at < ${now()}::timestamptz
              - make_interval(days => coalesce((app.policy ->> 'retention_days')::integer, 30))
          order by ended_at limit ${rowsMax} for update skip locked) over
        limit ${rowsMax})`,
  );
  await purgeInPortions(
    (rowsMax) => sql`
      update run set idempotency_key = null, idempotency_hash = null
      where id in (
        select id from run
        where idempotency_key is not null and created_at < ${now()}::timestamptz - interval '24 hours'
        limit ${rowsMax} for update skip locked)`,
  );
}
