/**
 * Closes what nobody will close any more: calls whose gateway is gone, and reservations that ran
 * out. Runs in the worker every few seconds; any number of workers may run it at once.
 */
import type { Bus } from "#bus/bus.ts";
import { heartbeatLostS } from "#contracts/internal_calls.ts";
import { purgeBefore, purgeInPortions } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";
import { noteTracesOf } from "#traces/trace_due.ts";
import { countCalls } from "./call_usage.ts";

/** Calls of a gateway that lives but reaches no api go on for this long. */
const unreachableMs = 5 * 60 * 1000;
/** Rows that one round changes at most; the next round takes the rest. */
const batchMax = 1000;

export interface Swept {
  closed: number;
  expired: number;
}

/**
 * A call is given up when its heartbeat is older than `heartbeatLostS` and
 * - its gateway is not on the bus any more, or
 * - its gateway has reported other calls for longer than that without a gap, this one missing, or
 * - nothing was heard for `unreachableMs`.
 * So calls go on through an outage of the api, and one that a living gateway lost is closed as well.
 */
export async function sweepCalls(deps: { sql: Sql; bus: Bus; now(): Date }): Promise<Swept> {
  const { sql } = deps;
  const now = deps.now();
  const lostBefore = new Date(now.getTime() - heartbeatLostS * 1000);
  const unreachableBefore = new Date(now.getTime() - unreachableMs);
  const livingGateways = [...(await deps.bus.capacities()).keys()];
  const closed = await sql.begin(async (transaction) => {
    const rows = await transaction<{ id: string }[]>`
    with lost as (
      select call.id from call
      left join gateway_heartbeat gateway on gateway.gateway_id = call.gateway_id
      where call.state = 'in_progress' and call.heartbeat_at < ${lostBefore}
        and (
          call.gateway_id <> all (${livingGateways}::text[])
          or (gateway.heartbeat_at >= ${lostBefore} and gateway.since < ${lostBefore})
          or call.heartbeat_at < ${unreachableBefore}
        )
      order by call.id limit ${batchMax} for update of call skip locked
    ),
    closed as (
      update call
      set state = 'ended', end_reason = 'error', error_code = 'gateway_lost', ended_at = call.heartbeat_at,
          duration_ms = extract(epoch from call.heartbeat_at - call.started_at) * 1000
      from lost where call.id = lost.id
      returning call.id)
    ${noteTracesOf(transaction, "call", sql`closed`)} returning source_id as id`;
    await countCalls(
      transaction,
      rows.map(({ id }) => id),
      now,
    );
    return rows.length;
  });
  const expired = await sql`
    with overdue as (
      select id from call where state = 'reserved' and expires_at <= ${now}
      order by id limit ${batchMax} for update skip locked
    )
    update call set state = 'expired' from overdue where call.id = overdue.id`;
  return { closed, expired: expired.count };
}

/** A gateway that was silent for so long comes back under another name. */
const gatewayKeptMs = 7 * 24 * 60 * 60 * 1000;

/** Deletes calls with all that was said in them when their organization has kept them long enough. */
export async function purgeCalls({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  const at = now();
  await purgeInPortions(
    (rowsMax) => sql`
      delete from call where id in (
        select over.id
        from organization cross join lateral (
          select id from call
          where organization_id = organization.id and state in ('ended', 'expired')
            and created_at < ${at}::timestamptz - make_interval(days => organization.call_retention_days)
          order by created_at limit ${rowsMax} for update skip locked) over
        limit ${rowsMax})`,
  );
  const silentSince = new Date(at.getTime() - gatewayKeptMs);
  await purgeBefore(sql, { table: "gateway_heartbeat", column: "heartbeat_at" }, silentSince);
}
