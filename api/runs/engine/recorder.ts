/**
 * Writes what runs do: events, node states, inputs asked for, ends. All runs of a worker share one
 * line of group commits: what comes while a commit is under way goes into the next one, so the first
 * event of a node leaves at once and a burst is joined. Nothing is published before it is durable.
 *
 * Every commit carries each run's epoch. A worker that lost its lease writes nothing: its run is
 * reported to `onLost` and left to its new holder.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Bus } from "#bus/bus.ts";
import { type RunEventBatch, runTopic } from "#contracts/internal_runs.ts";
import type { NewRunEvent, RunEvent } from "#contracts/run_event.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { deliverCallbacksTask } from "../run_queue.ts";
import type { NodeRunRow, RunOutcome } from "../run_rows.ts";
import type { AskedInput } from "./input_answers.ts";

/** Deltas come out at most so often, each with those that came since: the first one after a pause at once. */
const deltaWaitMs = 10;
/** Far below what an event may have. */
const deltaCharactersMax = 16 * 1024;
/** Rows in one commit; what is over waits for the next one. */
const eventsMaxInCommit = 2000;

/** One run's pen. Calls only note; `flush` answers when all that was noted is durable. */
export interface RunWriter {
  append(event: NewRunEvent): void;
  saveNode(row: NodeRunRow): void;
  ask(input: AskedInput): void;
  /** The answer to this request is in what was noted: after a crash it is not told again. */
  takeAnswer(inputRequestId: string): void;
  /** Ends or parks the run with the last events, and gives up the lease. Nothing may follow. */
  leave(outcome: RunOutcome, activeMs: number): void;
  flush(): Promise<void>;
}

interface Pending {
  events: RunEvent[];
  nodes: Map<string, NodeRunRow>;
  asked: AskedInput[];
  taken: string[];
  left: { outcome: RunOutcome; activeMs: number } | undefined;
}

interface OpenRun {
  id: string;
  epoch: number;
  lastEventId: number;
  pending: Pending;
  /** What it noted last is being committed. */
  committing: boolean;
  lost: boolean;
  onLost(): void;
}

/** What one run has to write. */
interface Step {
  run: OpenRun;
  pending: Pending;
}

export interface Recorder {
  open(run: { id: string; epoch: number; last_event_id: number }, onLost: () => void): RunWriter;
  /** Writes what is noted, then stops. */
  close(): Promise<void>;
}

const nothing = (): Pending => ({ events: [], nodes: new Map(), asked: [], taken: [], left: undefined });

export function createRecorder(deps: { sql: Sql; bus: Bus; now(): Date; onError(error: unknown): void }): Recorder {
  const dirty = new Set<OpenRun>();
  let underWay: Promise<void> | undefined;
  let scheduled = false;
  let committedMs = 0;

  function schedule(urgent: boolean): void {
    if (underWay || (scheduled && !urgent)) return;
    scheduled = true;
    const waitMs = deltaWaitMs - (performance.now() - committedMs);
    if (urgent || waitMs <= 0) setImmediate(start);
    else void wait(waitMs).then(start);
  }

  function start(): void {
    scheduled = false;
    if (underWay || dirty.size === 0) return;
    underWay = commitDirty().finally(() => {
      underWay = undefined;
      committedMs = performance.now();
      if (dirty.size > 0) schedule(true);
    });
  }

  async function commitDirty(): Promise<void> {
    const batch: Step[] = [];
    let events = 0;
    for (const run of dirty) {
      if (events >= eventsMaxInCommit) break;
      dirty.delete(run);
      batch.push({ run, pending: run.pending });
      events += run.pending.events.length;
      run.pending = nothing();
      run.committing = true;
    }
    const held = await commitBatch(batch);
    for (const { run, pending } of batch) {
      run.committing = false;
      if (!held.has(run.id)) lose(run);
      else if (pending.events.length > 0) publish(deps.bus, run.id, pending.events);
    }
  }

  /** @returns the runs that were written; the others are left to whoever takes their leases over */
  async function commitBatch(batch: readonly Step[]): Promise<ReadonlySet<string>> {
    try {
      return await commit(deps.sql, batch, deps.now());
    } catch (error) {
      if (!isRefusal(error) || batch.length === 1) {
        deps.onError(error);
        return new Set();
      }
    }
    // Postgres refused the whole, because of one of them perhaps: the others are not to suffer for it.
    const held = new Set<string>();
    for (const step of batch) for (const id of await commitBatch([step])) held.add(id);
    return held;
  }

  function lose(run: OpenRun): void {
    dirty.delete(run);
    if (run.lost) return;
    run.lost = true;
    run.onLost();
  }

  return {
    open({ id, epoch, last_event_id }, onLost) {
      const run: OpenRun = {
        id,
        epoch,
        lastEventId: last_event_id,
        pending: nothing(),
        committing: false,
        lost: false,
        onLost,
      };
      const note = (urgent: boolean) => {
        if (run.lost) return;
        dirty.add(run);
        schedule(urgent);
      };
      return {
        append(event) {
          if (run.lost || joinDelta(run.pending.events.at(-1), event)) return;
          run.lastEventId += 1;
          run.pending.events.push({ id: run.lastEventId, run_id: id, created_at: deps.now().toISOString(), ...event });
          note(event.type !== "content.delta");
        },
        saveNode(row) {
          run.pending.nodes.set(row.node_id, row);
          note(true);
        },
        ask(input) {
          run.pending.asked.push(input);
          note(true);
        },
        takeAnswer(inputRequestId) {
          run.pending.taken.push(inputRequestId);
          note(true);
        },
        leave(outcome, activeMs) {
          run.pending.left = { outcome, activeMs };
          note(true);
        },
        async flush() {
          while (!run.lost && (dirty.has(run) || run.committing)) {
            start();
            await underWay;
          }
        },
      };
    },
    async close() {
      while (dirty.size > 0 || underWay) {
        start();
        await underWay;
      }
    },
  };
}

/** Answered by Postgres, as against a connection that broke: nothing of it is written. */
const isRefusal = (error: unknown) => error instanceof Error && error.name === "PostgresError";

/** Adds a delta to the one before it, where both are of one node's same message. */
function joinDelta(last: RunEvent | undefined, next: NewRunEvent): boolean {
  if (last?.type !== "content.delta" || next.type !== "content.delta") return false;
  if (last.node_run_id !== next.node_run_id) return false;
  if (last.data.index !== next.data.index || last.data.channel !== next.data.channel) return false;
  if (last.data.text === undefined || next.data.text === undefined) return false;
  if (last.data.text.length + next.data.text.length > deltaCharactersMax) return false;
  last.data = { ...last.data, text: last.data.text + next.data.text };
  return true;
}

function publish(bus: Bus, runId: string, events: readonly RunEvent[]): void {
  const batch: RunEventBatch = {
    events: events.map((event) => ({ id: event.id, type: event.type, json: JSON.stringify(event) })),
  };
  // A lost publish is no loss: readers see the gap, or ask again.
  bus.publish(runTopic(runId), JSON.stringify(batch)).catch(() => undefined);
}

/** One transaction for all runs of the batch. @returns the runs whose lease still held: the others wrote nothing */
async function commit(sql: Sql, batch: readonly Step[], now: Date): Promise<ReadonlySet<string>> {
  return sql.begin(async (transaction) => {
    // Locked in the order of ids, as every statement over several runs does: two of them never wait for each other.
    const rows = await transaction<{ id: string }[]>`
      with held as materialized (
        select run.id from run
        join unnest(
          ${batch.map(({ run }) => run.id)}::uuid[], ${batch.map(({ run }) => run.epoch)}::integer[]
        ) as step (id, epoch) on run.id = step.id and run.epoch = step.epoch
        where run.status = 'running' order by run.id for update of run)
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
        ${batch.map(({ pending }) => pending.events.at(-1)?.id ?? null)}::integer[],
        ${batch.map(({ pending }) => pending.left?.outcome.status ?? null)}::text[],
        ${batch.map(({ pending }) => outputOf(pending))}::text[], ${batch.map(({ pending }) => errorOf(pending))}::text[],
        ${batch.map(({ pending }) => usageOf(pending))}::text[],
        ${batch.map(({ pending }) => pending.left?.activeMs ?? null)}::double precision[],
        ${batch.map(({ pending }) => wakeAtOf(pending))}::timestamptz[],
        ${batch.map(({ pending }) => String(hasFinished(pending)))}::text[]
      ) as step (id, last_event_id, status, output, error, usage, active_ms, wake_at, finished) on step.id = held.id
      where run.id = held.id
      returning run.id`;
    const held = new Set(rows.map(({ id }) => id));
    const written = batch.filter(({ run }) => held.has(run.id));
    await Promise.all([
      insertEvents(
        transaction,
        written.flatMap(({ pending }) => pending.events),
      ),
      upsertNodes(transaction, written, now),
    ]);
    await insertAsked(transaction, written, now);
    await markTaken(transaction, written);
    await endRuns(transaction, written, now);
    return held;
  });
}

const outputOf = ({ left }: Pending) =>
  left?.outcome.status === "succeeded" ? JSON.stringify(left.outcome.output) : null;
const errorOf = ({ left }: Pending) => (left?.outcome.status === "failed" ? JSON.stringify(left.outcome.error) : null);
const usageOf = ({ left }: Pending) => (left ? JSON.stringify(left.outcome.usage) : null);
const wakeAtOf = ({ left }: Pending) =>
  left && "wakeAt" in left.outcome ? (left.outcome.wakeAt?.toISOString() ?? null) : null;

/** A node came to its end: whatever kills workers, it is not all of this run. */
const hasFinished = ({ nodes }: Pending) =>
  [...nodes.values()].some(({ status }) => status !== "running" && status !== "waiting");

async function insertEvents(sql: AnySql, events: readonly RunEvent[]): Promise<void> {
  if (events.length === 0) return;
  await sql`
    insert into run_event (run_id, id, type, body, created_at)
    select * from unnest(
      ${events.map((event) => event.run_id)}::uuid[], ${events.map((event) => event.id)}::integer[],
      ${events.map((event) => event.type)}::text[], ${events.map((event) => JSON.stringify(event))}::text[],
      ${events.map((event) => event.created_at)}::timestamptz[]
    )`;
}

async function upsertNodes(sql: AnySql, batch: readonly Step[], now: Date): Promise<void> {
  const rows = batch.flatMap(({ run, pending }) => [...pending.nodes.values()].map((node) => ({ run, node })));
  if (rows.length === 0) return;
  const jsonOf = (value: unknown) => (value === undefined || value === null ? null : JSON.stringify(value));
  await sql`
    insert into node_run (id, run_id, node_id, attempt, status, output, error, usage, handle, wake_at, started_at, ended_at)
    select id, run_id, node_id, attempt, status, output::json, error::json, usage::json, handle, wake_at, ${now},
           case when status not in ('running', 'waiting') then ${now}::timestamptz end
    from unnest(
      ${rows.map(({ node }) => node.id)}::uuid[], ${rows.map(({ run }) => run.id)}::uuid[],
      ${rows.map(({ node }) => node.node_id)}::text[], ${rows.map(({ node }) => node.attempt)}::integer[],
      ${rows.map(({ node }) => node.status)}::text[], ${rows.map(({ node }) => jsonOf(node.output))}::text[],
      ${rows.map(({ node }) => jsonOf(node.error))}::text[], ${rows.map(({ node }) => jsonOf(node.usage))}::text[],
      ${rows.map(({ node }) => node.handle)}::text[], ${rows.map(({ node }) => node.wake_at?.toISOString() ?? null)}::timestamptz[]
    ) as node (id, run_id, node_id, attempt, status, output, error, usage, handle, wake_at)
    on conflict on constraint node_run_run_id_node_id_iteration_key do update
    set attempt = excluded.attempt, status = excluded.status, output = excluded.output, error = excluded.error,
        usage = excluded.usage, handle = excluded.handle, wake_at = excluded.wake_at, ended_at = excluded.ended_at`;
}

/** Text as Postgres can keep it: a template may have rendered U+0000 into it. */
const textOf = (text: string) => text.replaceAll("\0", "");

/** After the nodes, which the rows point at. */
async function insertAsked(sql: AnySql, batch: readonly Step[], now: Date): Promise<void> {
  for (const { run, pending } of batch) {
    for (const { id, nodeRunId, nodeId, question, onTimeout, expiresAt } of pending.asked) {
      await sql`
        insert into input_request
          (id, run_id, node_run_id, node_id, type, prompt, params, editable_params, params_schema, response_schema,
           status, on_timeout, expires_at, created_at)
        values
          (${id}, ${run.id}, ${nodeRunId}, ${nodeId}, ${question.type}, ${textOf(question.prompt)},
           ${JSON.stringify(question.params)}::text::json, ${question.editable_params}::text[],
           ${question.params_schema ? JSON.stringify(question.params_schema) : null}::text::json,
           ${question.response_schema ? JSON.stringify(question.response_schema) : null}::text::json,
           'pending', ${onTimeout}, ${expiresAt ?? null}, ${now})`;
    }
  }
}

async function markTaken(sql: AnySql, batch: readonly Step[]): Promise<void> {
  const taken = batch.flatMap(({ pending }) => pending.taken);
  if (taken.length > 0) await sql`update input_request set taken = true where id = any (${taken}::uuid[])`;
}

/**
 * What belongs to the end of a run, in the same transaction: nobody can answer it any more, and a
 * callback is never forgotten, and never sent for a run that did not end.
 */
async function endRuns(sql: AnySql, batch: readonly Step[], now: Date): Promise<void> {
  const ended = batch
    .filter(({ pending }) => pending.left && !("wakeAt" in pending.left.outcome))
    .map(({ run }) => run.id);
  if (ended.length === 0) return;
  await sql`
    update input_request set status = 'canceled', resolved_at = ${now}
    where run_id = any (${ended}::uuid[]) and status = 'pending'`;
  await sql`
    select graphile_worker.add_job(
      ${deliverCallbacksTask}, json_build_object('run_id', id), job_key := 'callbacks:' || id)
    from unnest(${ended}::uuid[]) as ended (id)
    where exists (select 1 from callback where callback.run_id = ended.id and attempted_at is null)`;
}
