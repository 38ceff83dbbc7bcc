/**
 * Who executes a run. A worker claims it for `leaseMs`, renews the lease while it works and gives
 * it up when the run ends or waits. The epoch that a claim raises fences off a worker that lost its
 * lease: whatever it still writes changes nothing.
 */
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { type AppPolicy, appPolicyDefault } from "../app_policy.ts";
import type { ExecutableRun, NodeRunRow } from "../run_rows.ts";

export const leaseMs = 9000;
export const leaseRenewalMs = 3000;

export interface ClaimedRun {
  run: ExecutableRun;
  definition: WorkflowDefinition;
  policy: AppPolicy;
  /** Checkpoint of an earlier claim; empty for a run that begins. */
  nodes: NodeRunRow[];
}

/**
 * Claims a run that is pending or whose holder is gone. Undefined when there is nothing to do now:
 * somebody has it, it is over, its app runs as many as it may, or an earlier run of its session is
 * under way. Then it stays pending, and an ending run or the sweeper wakes it.
 */
export async function claimRun(sql: Sql, runId: string, workerId: string, now: Date): Promise<ClaimedRun | undefined> {
  return sql.begin(async (transaction) => {
    const [app] = await transaction<{ id: string; policy: Partial<AppPolicy>; definition: WorkflowDefinition }[]>`
      select app.id, app.policy, version.definition
      from run join app on app.id = run.app_id join workflow_version version on version.id = run.workflow_version_id
      where run.id = ${runId} and run.status in ('pending', 'running')`;
    if (!app) return undefined;
    const policy: AppPolicy = { ...appPolicyDefault, ...app.policy };
    // Claims of one app follow each other, so that two of them cannot both take its last place.
    await transaction`select pg_advisory_xact_lock(hashtextextended(${app.id}, 0))`;
    const [run] = await transaction<ExecutableRun[]>`
      update run
      set status = 'running', epoch = epoch + 1, attempt = attempt + 1, worker_id = ${workerId}, wake_at = null,
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
                usage, timeout_s, active_ms, attempt, epoch, last_event_id`;
    if (!run) return undefined;
    const nodes = run.attempt > 1 ? await nodesOf(transaction, run.id) : [];
    return { run, definition: app.definition, policy, nodes };
  });
}

/** Renews the leases of what this worker holds. Runs that it does not hold any more are missing from the answer. */
export async function renewLeases(
  sql: Sql,
  held: readonly { id: string; epoch: number }[],
  now: Date,
): Promise<ReadonlyMap<string, { cancelRequested: boolean }>> {
  if (held.length === 0) return new Map();
  const rows = await sql<{ id: string; cancel_requested: boolean }[]>`
    update run set lease_until = ${leaseEnd(now)}
    from unnest(${held.map(({ id }) => id)}::uuid[], ${held.map(({ epoch }) => epoch)}::integer[]) as held (id, epoch)
    where run.id = held.id and run.epoch = held.epoch and run.status = 'running'
    returning run.id, run.cancel_requested_at is not null as cancel_requested`;
  return new Map(rows.map((row) => [row.id, { cancelRequested: row.cancel_requested }]));
}

function leaseEnd(now: Date): Date {
  return new Date(now.getTime() + leaseMs);
}

async function nodesOf(sql: AnySql, runId: string): Promise<NodeRunRow[]> {
  return sql<NodeRunRow[]>`
    select id, node_id, attempt, status, output, error, usage, handle, wake_at from node_run where run_id = ${runId}`;
}

export interface ResolvedInput {
  id: string;
  node_id: string;
  status: "resolved" | "expired";
  params: Record<string, unknown>;
  response: {
    decision?: "approve" | "reject" | "respond";
    params?: Record<string, unknown>;
    feedback?: unknown;
    comment?: string;
    responded_by?: string;
  } | null;
}

/** Answers that came for nodes which still wait. */
export async function resolvedInputs(sql: Sql, runId: string): Promise<ResolvedInput[]> {
  return sql<ResolvedInput[]>`
    select request.id, request.node_id, request.status, request.params, request.response
    from input_request request join node_run on node_run.id = request.node_run_id
    where request.run_id = ${runId} and request.status in ('resolved', 'expired') and node_run.status = 'waiting'
    order by request.resolved_at, request.id`;
}
