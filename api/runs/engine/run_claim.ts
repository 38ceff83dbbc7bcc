/**
 * Who executes a run. A worker claims it for `leaseMs`, renews the lease while it works and gives
 * it up when the run ends or waits. The epoch that a claim raises fences off a worker that lost its
 * lease: whatever it still writes changes nothing.
 */

import { type AppPolicy, appPolicyDefault } from "#apps/app_policy.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { canceledBy } from "../run_cancel.ts";
import type { ExecutableRun, NodeRunRow } from "../run_rows.ts";
import { statementDeadline, within } from "./deadline.ts";

export const leaseMs = 9000;
export const leaseRenewalMs = 3000;
/** Claims in one transaction; what is over waits for the next one. */
const claimsMax = 50;
/** Definitions that are kept: versions never change. */
const definitionsMax = 200;

export interface ClaimedRun {
  run: ExecutableRun;
  definition: WorkflowDefinition;
  policy: AppPolicy;
  /** Checkpoint of an earlier claim; empty for a run that begins. */
  nodes: NodeRunRow[];
  /** Somebody wants it canceled, and nobody has followed yet. */
  canceled: { reason?: string; by?: string } | undefined;
}

interface ClaimedRow extends ExecutableRun {
  cancel_requested_at: Date | null;
  cancel_reason: string | null;
  cancel_by: string | null;
}

export interface RunClaims {
  /**
   * Claims a run that is pending or whose holder is gone. Undefined when there is nothing to do now:
   * somebody has it, it is over, its app runs as many as it may, or an earlier run of its session is
   * under way. Then it stays pending, and `run_places.ts` has it woken.
   */
  claim(runId: string): Promise<ClaimedRun | undefined>;
}

/** Claims in one line: what is wanted while a transaction is under way goes into the next one together. */
export function createRunClaims(deps: { sql: Sql; workerId: string; now(): Date }): RunClaims {
  const definitions = new Map<string, WorkflowDefinition>();
  const wanted = new Map<string, Claim>();
  let busy = false;

  /** Never rejects. Not busy again in the very turn in which nothing is wanted: nobody is forgotten between. */
  async function claimWanted(): Promise<void> {
    busy = true;
    // What is wanted in one turn goes together.
    await new Promise((resolve) => setImmediate(resolve));
    while (wanted.size > 0) {
      const batch = new Map([...wanted].slice(0, claimsMax));
      for (const id of batch.keys()) wanted.delete(id);
      try {
        const claimed = await within(statementDeadline, claimRuns(deps, [...batch.keys()], definitions));
        for (const [id, { resolve }] of batch) resolve(claimed.get(id));
      } catch (error) {
        for (const { reject } of batch.values()) reject(error);
      }
    }
    busy = false;
  }

  return {
    claim(runId) {
      const known = wanted.get(runId);
      if (known) return known.promise;
      const own = newClaim();
      wanted.set(runId, own);
      if (!busy) void claimWanted();
      return own.promise;
    },
  };
}

interface Claim {
  promise: Promise<ClaimedRun | undefined>;
  resolve(claimed: ClaimedRun | undefined): void;
  reject(error: unknown): void;
}

function newClaim(): Claim {
  let resolve: Claim["resolve"] = () => undefined;
  let reject: Claim["reject"] = () => undefined;
  const promise = new Promise<ClaimedRun | undefined>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}

async function claimRuns(
  { sql, workerId, now }: { sql: Sql; workerId: string; now(): Date },
  runIds: readonly string[],
  definitions: Map<string, WorkflowDefinition>,
): Promise<ReadonlyMap<string, ClaimedRun>> {
  return sql.begin(async (transaction) => {
    // A claim that a crash of Postgres forgets is made again: nobody was told of it, as the first event
    // of the run is durable, and with it all that was written before. The same epoch is then given a second
    // time, which is why every write names the worker too.
    const [, apps] = await Promise.all([
      transaction`set local synchronous_commit = off`,
      // Claims of one app follow each other, so that two of them cannot both take its last place.
      transaction<{ id: string; policy: Partial<AppPolicy> }[]>`
        select id, policy, pg_advisory_xact_lock(hashtextextended(id::text, 0))
        from (
          select id, policy from app
          where id in (
            select app_id from run where id = any (${runIds as string[]}::uuid[]) and status in ('pending', 'running'))
          order by id) app`,
    ]);
    if (apps.length === 0) return new Map();
    const policies = new Map(apps.map(({ id, policy }) => [id, { ...appPolicyDefault, ...policy }]));
    const rows = await takeRows(transaction, runIds, policies, workerId, now());
    await loadDefinitions(transaction, rows, definitions);
    const nodes = await nodesOf(
      transaction,
      rows.filter(({ attempt }) => attempt > 1).map(({ id }) => id),
    );
    return new Map(
      rows.map(({ cancel_requested_at, cancel_reason, cancel_by, ...run }) => [
        run.id,
        {
          run,
          definition: definitions.get(run.workflow_version_id) as WorkflowDefinition,
          policy: policies.get(run.app_id) ?? appPolicyDefault,
          nodes: nodes.filter(({ run_id }) => run_id === run.id),
          canceled: cancel_requested_at === null ? undefined : canceledBy({ cancel_reason, cancel_by }),
        },
      ]),
    );
  });
}

/** Under the locks of their apps. */
async function takeRows(
  sql: AnySql,
  runIds: readonly string[],
  policies: ReadonlyMap<string, AppPolicy>,
  workerId: string,
  now: Date,
): Promise<ClaimedRow[]> {
  return sql<ClaimedRow[]>`
    with free as (
      select app.id as app_id, app.runs_max - (
        select count(*) from run where run.app_id = app.id and run.status = 'running') as places
      from unnest(
        ${[...policies.keys()]}::uuid[], ${[...policies.values()].map((policy) => policy.max_concurrent_runs)}::integer[]
      ) as app (id, runs_max)),
    -- Whoever has a row locked changes it: it is refused now, and looked at again.
    due as materialized (
      select id, app_id, status, created_at from run
      where id = any (${runIds as string[]}::uuid[])
        and ((status = 'pending' and (wake_at is null or wake_at <= ${now})) or (status = 'running' and lease_until < ${now}))
        and (status = 'running' or session_id is null or not exists (
          select 1 from run other
          where other.app_id = run.app_id and other.session_id = run.session_id and other.id <> run.id
            and (other.created_at, other.id) < (run.created_at, run.id)
            and other.status in ('pending', 'running', 'awaiting_input')))
      order by id for update skip locked),
    taken as (
      select due.id, due.status, free.places,
        row_number() over (partition by due.app_id, due.status order by due.created_at, due.id) as position
      from due join free on free.app_id = due.app_id)
    update run
    set recoveries = recoveries + case when run.status = 'running' then 1 else 0 end,
        status = 'running', epoch = epoch + 1, attempt = attempt + 1, worker_id = ${workerId}, wake_at = null, waits_for = null,
        lease_until = ${leaseEnd(now)}, started_at = coalesce(started_at, ${now})
    from taken
    where run.id = taken.id and (taken.status = 'running' or taken.position <= taken.places)
    returning run.id, run.created_at, organization_id, project_id, app_id, workflow_version_id, trace_id, input, metadata, session_id, user_id,
              timeout_s, active_ms, attempt, epoch, recoveries, last_event_id,
              cancel_requested_at, cancel_reason, cancel_by`;
}

async function loadDefinitions(
  sql: AnySql,
  rows: readonly ClaimedRow[],
  definitions: Map<string, WorkflowDefinition>,
): Promise<void> {
  const missing = [...new Set(rows.map((row) => row.workflow_version_id))].filter((id) => !definitions.has(id));
  if (missing.length === 0) return;
  // As many as one batch needs are never taken out again by it.
  const over = [...definitions.keys()].slice(0, Math.max(0, definitions.size + missing.length - definitionsMax));
  for (const id of over) if (!rows.some((row) => row.workflow_version_id === id)) definitions.delete(id);
  const versions = await sql<{ id: string; definition: WorkflowDefinition }[]>`
    select id, definition from workflow_version where id = any (${missing}::uuid[])`;
  for (const { id, definition } of versions) definitions.set(id, definition);
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

async function nodesOf(sql: AnySql, runIds: readonly string[]): Promise<(NodeRunRow & { run_id: string })[]> {
  if (runIds.length === 0) return [];
  return sql<(NodeRunRow & { run_id: string })[]>`
    select id, run_id, node_id, parent_id, iteration, attempt, status, output, error, usage, handle, wake_at
    from node_run where run_id = any (${runIds as string[]}::uuid[])`;
}
