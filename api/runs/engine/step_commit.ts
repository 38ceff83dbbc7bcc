/**
 * One group commit: what several runs have noted, in one transaction. Every run's part is written
 * only where this worker still holds it.
 */
import type { RunEvent } from "#contracts/run_event.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { noteTracesDue } from "#traces/trace_due.ts";
import { deliverCallbacksTask } from "../run_queue.ts";
import type { NodeRunRow, RunOutcome } from "../run_rows.ts";
import { countRuns } from "../run_usage.ts";
import type { AskedInput } from "./input_answers.ts";

export interface LoggedEvent {
  event: RunEvent;
  /** As it is stored and sent; undefined until it is. */
  json: string | undefined;
}

/** What a run has noted and not written. */
export interface Pending {
  events: LoggedEvent[];
  /** By id, with the output as JSON. */
  nodes: Map<string, { row: NodeRunRow; output: string | null }>;
  asked: AskedInput[];
  closed: { id: string; as: "taken" | "canceled" }[];
  left: { outcome: RunOutcome; activeMs: number } | undefined;
  bytes: number;
}

export interface Step<Run extends { id: string; epoch: number } = { id: string; epoch: number }> {
  run: Run;
  pending: Pending;
}

export const nothingPending = (): Pending => ({
  events: [],
  nodes: new Map(),
  asked: [],
  closed: [],
  left: undefined,
  bytes: 0,
});

export const jsonOf = (value: unknown) => (value === undefined || value === null ? null : JSON.stringify(value));

export function jsonOfEvent(logged: LoggedEvent): string {
  logged.json ??= JSON.stringify(logged.event);
  return logged.json;
}

/** @returns the runs whose lease still held: the others wrote nothing */
export async function commitSteps(
  sql: Sql,
  batch: readonly Step[],
  { workerId, now }: { workerId: string; now: Date },
): Promise<ReadonlySet<string>> {
  return sql.begin(async (transaction) => {
    const held = await updateRuns(transaction, batch, workerId, now);
    const written = batch.filter(({ run }) => held.has(run.id));
    const billed = written.filter(({ pending }) => pending.left?.outcome.usage.cost);
    // One connection, one after the other, but without a wait for each answer.
    await Promise.all([
      insertEvents(transaction, written),
      upsertNodes(transaction, written, now),
      // After the nodes, which the requests point at.
      ...insertAsked(transaction, written, now),
      closeInputs(transaction, written, now),
      ...endRuns(transaction, written, now),
    ]);
    await countRuns(
      transaction,
      billed.map(({ run }) => run.id),
      now,
    );
    return held;
  });
}

async function updateRuns(
  sql: AnySql,
  batch: readonly Step[],
  workerId: string,
  now: Date,
): Promise<ReadonlySet<string>> {
  // Locked in the order of ids, as every statement over several runs does: two of them never wait for each other.
  const rows = await sql<{ id: string }[]>`
    with held as materialized (
      select run.id from run
      join unnest(
        ${batch.map(({ run }) => run.id)}::uuid[], ${batch.map(({ run }) => run.epoch)}::integer[]
      ) as step (id, epoch) on run.id = step.id and run.epoch = step.epoch
      where run.status = 'running' and run.worker_id = ${workerId} order by run.id for update of run)
    update run
    set last_event_id = coalesce(step.last_event_id, run.last_event_id),
        status = coalesce(step.status, run.status),
        output = coalesce(step.output::json, run.output),
        error = coalesce(step.error::json, run.error),
        usage = coalesce(step.usage::json, run.usage),
        active_ms = coalesce(step.active_ms, run.active_ms),
        recoveries = case when step.finished = 'true' then 0 else run.recoveries end,
        wake_at = case when step.status is null then run.wake_at else step.wake_at end,
        lease_until = case when step.status is null then run.lease_until end,
        ended_at = case when step.status in ('succeeded', 'failed', 'canceled') then ${now}::timestamptz end
    from held join unnest(
      ${batch.map(({ run }) => run.id)}::uuid[],
      ${batch.map(({ pending }) => pending.events.at(-1)?.event.id ?? null)}::integer[],
      ${batch.map(({ pending }) => pending.left?.outcome.status ?? null)}::text[],
      ${batch.map(({ pending }) => outputOf(pending))}::text[], ${batch.map(({ pending }) => errorOf(pending))}::text[],
      ${batch.map(({ pending }) => usageOf(pending))}::text[],
      ${batch.map(({ pending }) => pending.left?.activeMs ?? null)}::double precision[],
      ${batch.map(({ pending }) => wakeAtOf(pending))}::timestamptz[],
      ${batch.map(({ pending }) => String(hasFinished(pending)))}::text[]
    ) as step (id, last_event_id, status, output, error, usage, active_ms, wake_at, finished) on step.id = held.id
    where run.id = held.id
    returning run.id`;
  return new Set(rows.map(({ id }) => id));
}

const outputOf = ({ left }: Pending) =>
  left?.outcome.status === "succeeded" ? JSON.stringify(left.outcome.output) : null;
const errorOf = ({ left }: Pending) => (left?.outcome.status === "failed" ? JSON.stringify(left.outcome.error) : null);
const usageOf = ({ left }: Pending) => (left ? JSON.stringify(left.outcome.usage) : null);
const wakeAtOf = ({ left }: Pending) =>
  left && "wakeAt" in left.outcome ? (left.outcome.wakeAt?.toISOString() ?? null) : null;

/** A node came to its end: whatever kills workers, it is not all of this run. */
const hasFinished = ({ nodes }: Pending) =>
  [...nodes.values()].some(({ row: { status } }) => status !== "running" && status !== "waiting");

async function insertEvents(sql: AnySql, batch: readonly Step[]): Promise<void> {
  const events = batch.flatMap(({ pending }) => pending.events);
  if (events.length === 0) return;
  await sql`
    insert into run_event (run_id, id, type, body, created_at)
    select * from unnest(
      ${events.map(({ event }) => event.run_id)}::uuid[], ${events.map(({ event }) => event.id)}::integer[],
      ${events.map(({ event }) => event.type)}::text[], ${events.map(jsonOfEvent)}::text[],
      ${events.map(({ event }) => event.created_at)}::timestamptz[]
    )`;
}

async function upsertNodes(sql: AnySql, batch: readonly Step[], now: Date): Promise<void> {
  const nodes = batch.flatMap(({ run, pending }) => [...pending.nodes.values()].map((node) => ({ ...node, run })));
  if (nodes.length === 0) return;
  const rows = nodes.map(({ row }) => row);
  await sql`
    insert into node_run
      (id, run_id, node_id, parent_id, iteration, attempt, status, output, error, usage, handle, wake_at, started_at, ended_at)
    select id, run_id, node_id, parent_id, iteration, attempt, status, output::json, error::json, usage::json, handle,
           wake_at, ${now}, case when status not in ('running', 'waiting') then ${now}::timestamptz end
    from unnest(
      ${rows.map(({ id }) => id)}::uuid[], ${nodes.map(({ run }) => run.id)}::uuid[],
      ${rows.map(({ node_id }) => node_id)}::text[], ${rows.map(({ parent_id }) => parent_id)}::uuid[],
      ${rows.map(({ iteration }) => iteration)}::integer[], ${rows.map(({ attempt }) => attempt)}::integer[],
      ${rows.map(({ status }) => status)}::text[], ${nodes.map(({ output }) => output)}::text[],
      ${rows.map(({ error }) => jsonOf(error))}::text[], ${rows.map(({ usage }) => jsonOf(usage))}::text[],
      ${rows.map(({ handle }) => handle)}::text[], ${rows.map(({ wake_at }) => wake_at?.toISOString() ?? null)}::timestamptz[]
    ) as node (id, run_id, node_id, parent_id, iteration, attempt, status, output, error, usage, handle, wake_at)
    on conflict (id) do update
    set attempt = excluded.attempt, status = excluded.status, output = excluded.output, error = excluded.error,
        usage = excluded.usage, handle = excluded.handle, wake_at = excluded.wake_at, ended_at = excluded.ended_at`;
}

/** Text as Postgres can keep it: a template may have rendered U+0000 into it. */
const textOf = (text: string) => text.replaceAll("\0", "");

function insertAsked(sql: AnySql, batch: readonly Step[], now: Date) {
  const asked = batch.flatMap(({ run, pending }) => pending.asked.map((input) => ({ ...input, runId: run.id })));
  return asked.map(
    ({ id, runId, nodeRunId, nodeId, question, onTimeout, expiresAt }) => sql`
      insert into input_request
        (id, run_id, node_run_id, node_id, type, audience, prompt, params, editable_params, params_schema, response_schema,
         status, on_timeout, expires_at, created_at)
      values
        (${id}, ${runId}, ${nodeRunId}, ${nodeId}, ${question.type}, ${question.audience ?? "staff"}, ${textOf(question.prompt)},
         ${JSON.stringify(question.params)}::text::json, ${question.editable_params}::text[],
         ${jsonOf(question.params_schema)}::text::json, ${jsonOf(question.response_schema)}::text::json,
         'pending', ${onTimeout}, ${expiresAt ?? null}, ${now})`,
  );
}

/** One that was answered in the same moment in which nobody waited for it any more counts as taken. */
async function closeInputs(sql: AnySql, batch: readonly Step[], now: Date): Promise<void> {
  const closed = batch.flatMap(({ pending }) => pending.closed);
  if (closed.length === 0) return;
  const canceled = closed.filter(({ as }) => as === "canceled").map(({ id }) => id);
  await sql`
    update input_request
    set taken = true,
        resolved_at = case when status = 'pending' and id = any (${canceled}::uuid[]) then ${now} else resolved_at end,
        status = case when status = 'pending' and id = any (${canceled}::uuid[]) then 'canceled' else status end
    where id = any (${closed.map(({ id }) => id)}::uuid[])`;
}

/**
 * What belongs to the end of a run, in the same transaction: nobody can answer it any more, its trace is due, and
 * a callback is never forgotten, and never sent for a run that did not end.
 */
function endRuns(sql: AnySql, batch: readonly Step[], now: Date) {
  const ended = batch
    .filter(({ pending }) => pending.left && !("wakeAt" in pending.left.outcome))
    .map(({ run }) => run.id);
  if (ended.length === 0) return [];
  return [
    noteTracesDue(sql, "run", ended),
    sql`
      update input_request set status = 'canceled', resolved_at = ${now}
      where run_id = any (${ended}::uuid[]) and status = 'pending'`,
    sql`
      select graphile_worker.add_job(
        ${deliverCallbacksTask}, json_build_object('run_id', id), job_key := 'callbacks:' || id)
      from unnest(${ended}::uuid[]) as ended (id)
      where exists (select 1 from callback where callback.run_id = ended.id and attempted_at is null)`,
  ];
}
