/**
 * Who executes a run. A worker claims it for `leaseMs`, renews the lease while it works and gives
 * it up when the run ends or waits. The epoch that a claim raises fences off a worker that lost its
 * lease: whatever it still writes changes nothing.
 */
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { type AppPolicy, appPolicyDefault } from "../app_policy.ts";
import { canceledBy } from "../run_cancel.ts";
import type { ExecutableRun, NodeRunRow } from "../run_rows.ts";

export const leaseMs = 9000;
export const leaseRenewalMs = 3000;

export interface ClaimedRun {
  run: ExecutableRun;
  definition: WorkflowDefinition;
  policy: AppPolicy;
  /** Checkpoint of an earlier claim; empty for a run that begins. */
  nodes: NodeRunRow[];
  /** Somebody wants it canceled, and nobody has followed yet. */
  canceled: { reason?: string; by?: string } | undefined;
}

interface CancelRequest {
  cancel_requested_at: Date | null;
  cancel_reason: string | null;
  cancel_by: string | null;
}

/**
 * Claims a run that is pending or whose holder is gone. Undefined when there is nothing to do now:
 * somebody has it, it is over, its app runs as many as it may, or an earlier run of its session is
 * under way. Then it stays pending, and `run_places.ts` has it woken.
 */
export async function claimRun(sql: Sql, runId: string, workerId: string, now: Date): Promise<ClaimedRun | undefined> {
  return sql.begin(async (transaction) => {
    // A claim that a crash of Postgres forgets is made again: nobody was told of it, as the first event
    // of the run is durable, and with it all that was written before. The same epoch is then given a second
    // time, which is why every write names the worker too.
    await transaction`set local synchronous_commit = off`;
    const [app] = await transaction<{ id: string; policy: Partial<AppPolicy>; definition: WorkflowDefinition }[]>`
      select app.id, app.policy, version.definition
      from run join app on app.id = run.app_id join workflow_version version on version.id = run.workflow_version_id
      where run.id = ${runId} and run.status in ('pending', 'running')`;
    if (!app) return undefined;
    const policy: AppPolicy = { ...appPolicyDefault, ...app.policy };
    // Claims of one app follow each other, so that two of them cannot both take its last place.
    await transaction`select pg_advisory_xact_lock(hashtextextended(${app.id}, 0))`;
    const [claimed] = await transaction<(ExecutableRun & CancelRequest)[]>`
      update run
      set recoveries = recoveries + case when status = 'running' then 1 else 0 end,
          status = 'running', epoch = epoch + 1, attempt = attempt + 1, worker_id = ${workerId}, wake_at = null, waits_for = null,
          lease_until = ${leaseEnd(now)}, started_at = coalesce(started_at, ${now})
      where id = ${runId}
        and ((status = 'pending' and (wake_at is null or wake_at <= ${now})) or (status = 'running' and lease_until < ${now}))
        and (status = 'running' or ${policy.max_concurrent_runs} > (
          select count(*) from run other where other.app_id = ${app.id} and other.status = 'running'))
        and (status = 'running' or session_id is null or not exists (
          select 1 from run other
          where other.app_id = ${app.id} and other.session_id = run.session_id and other.id <> run.id
            and (other.created_at, other.id) < (run.created_at, run.id)
            and other.status in ('pending', 'running', 'awaiting_input')))
      returning id, organization_id, project_id, app_id, workflow_version_id, input, metadata, session_id, user_id,
                timeout_s, active_ms, attempt, epoch, recoveries, last_event_id,
                cancel_requested_at, cancel_reason, cancel_by`;
    if (!claimed) return undefined;
    const { cancel_requested_at, cancel_reason, cancel_by, ...run } = claimed;
    const canceled = cancel_requested_at === null ? undefined : canceledBy({ cancel_reason, cancel_by });
    const nodes = run.attempt > 1 ? await nodesOf(transaction, run.id) : [];
    return { run, definition: app.definition, policy, nodes, canceled };
  });
}

/**
 * Renews the leases of what this worker holds, and notes how long each has worked: a run's time-out
 * goes on counting over a crash. Runs that it does not hold any more are missing from the answer.
 */
export async function renewLeases(
  sql: Sql,
  held: readonly { id: string; epoch: number; activeMs: number }[],
  { workerId, now }: { workerId: string; now: Date },
): Promise<ReadonlyMap<string, { cancelRequested: boolean }>> {
  if (held.length === 0) return new Map();
  // Locked in the order of ids, as every statement over several runs does: two of them never wait for each other.
  const rows = await sql<{ id: string; cancel_requested: boolean }[]>`
    with held as materialized (
      select run.id, lease.active_ms
      from run join unnest(
        ${held.map(({ id }) => id)}::uuid[], ${held.map(({ epoch }) => epoch)}::integer[],
        ${held.map(({ activeMs }) => activeMs)}::double precision[]
      ) as lease (id, epoch, active_ms) on run.id = lease.id and run.epoch = lease.epoch
      where run.status = 'running' and run.worker_id = ${workerId} order by run.id for update of run)
    update run set lease_until = ${leaseEnd(now)}, active_ms = held.active_ms
    from held where run.id = held.id
    returning run.id, run.cancel_requested_at is not null as cancel_requested`;
  return new Map(rows.map((row) => [row.id, { cancelRequested: row.cancel_requested }]));
}

function leaseEnd(now: Date): Date {
  return new Date(now.getTime() + leaseMs);
}

async function nodesOf(sql: AnySql, runId: string): Promise<NodeRunRow[]> {
  return sql<NodeRunRow[]>`
    select id, node_id, parent_id, iteration, attempt, status, output, error, usage, handle, wake_at from node_run where run_id = ${runId}`;
}
