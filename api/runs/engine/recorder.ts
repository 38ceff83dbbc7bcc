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
import type { NodeRunRow, RunOutcome } from "../run_rows.ts";
import type { InputQuestion } from "./node_kind.ts";

/** Deltas wait this long for company. */
const deltaWaitMs = 10;
/** Rows in one commit; what is over waits for the next one. */
const eventsMaxInCommit = 2000;

export interface AskedInput {
  id: string;
  nodeRunId: string;
  nodeId: string;
  question: InputQuestion;
  onTimeout: string;
  expiresAt: Date | undefined;
}

/** One run's pen. Calls only note; `flush` answers when all that was noted is durable. */
export interface RunWriter {
  append(event: NewRunEvent): void;
  saveNode(row: NodeRunRow): void;
  ask(input: AskedInput): void;
  /** Ends or parks the run with the last events, and gives up the lease. Nothing may follow. */
  leave(outcome: RunOutcome, activeMs: number): void;
  flush(): Promise<void>;
}

interface Pending {
  events: RunEvent[];
  nodes: Map<string, NodeRunRow>;
  asked: AskedInput[];
  left: { outcome: RunOutcome; activeMs: number } | undefined;
}

interface OpenRun {
  id: string;
  epoch: number;
  lastEventId: number;
  pending: Pending;
  lost: boolean;
  onLost(): void;
}

export interface Recorder {
  open(run: { id: string; epoch: number; last_event_id: number }, onLost: () => void): RunWriter;
  /** Writes what is noted, then stops. */
  close(): Promise<void>;
}

const nothing = (): Pending => ({ events: [], nodes: new Map(), asked: [], left: undefined });

export function createRecorder(deps: { sql: Sql; bus: Bus; now(): Date; onError(error: unknown): void }): Recorder {
  const dirty = new Set<OpenRun>();
  let underWay: Promise<void> | undefined;
  let scheduled = false;

  function schedule(urgent: boolean): void {
    if (underWay || (scheduled && !urgent)) return;
    scheduled = true;
    if (urgent) setImmediate(start);
    else void wait(deltaWaitMs).then(start);
  }

  function start(): void {
    scheduled = false;
    if (underWay || dirty.size === 0) return;
    underWay = commitDirty().finally(() => {
      underWay = undefined;
      if (dirty.size > 0) schedule(true);
    });
  }

  async function commitDirty(): Promise<void> {
    const batch: { run: OpenRun; pending: Pending }[] = [];
    let events = 0;
    for (const run of dirty) {
      if (events >= eventsMaxInCommit) break;
      dirty.delete(run);
      batch.push({ run, pending: run.pending });
      events += run.pending.events.length;
      run.pending = nothing();
    }
    let held: ReadonlySet<string>;
    try {
      held = await commit(deps.sql, batch, deps.now());
    } catch (error) {
      // Whether the commit happened is unknown: each run is left to whoever takes its lease over.
      deps.onError(error);
      held = new Set();
    }
    for (const { run, pending } of batch) {
      if (!held.has(run.id)) lose(run);
      else if (pending.events.length > 0) publish(deps.bus, run.id, pending.events);
    }
  }

  function lose(run: OpenRun): void {
    dirty.delete(run);
    if (run.lost) return;
    run.lost = true;
    run.onLost();
  }

  return {
    open({ id, epoch, last_event_id }, onLost) {
      const run: OpenRun = { id, epoch, lastEventId: last_event_id, pending: nothing(), lost: false, onLost };
      const note = (urgent: boolean) => {
        if (run.lost) return;
        dirty.add(run);
        schedule(urgent);
      };
      return {
        append(event) {
          if (run.lost || joinDelta(run.pending.events.at(-1), event)) return;
          run.lastEventId += 1;
          run.pending.events.push({ ...event, id: run.lastEventId, run_id: id, created_at: deps.now().toISOString() });
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
        leave(outcome, activeMs) {
          run.pending.left = { outcome, activeMs };
          note(true);
        },
        async flush() {
          while (!run.lost && (dirty.has(run) || underWay)) {
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

/** Adds a delta to the one before it, where both are of one node's same message. */
function joinDelta(last: RunEvent | undefined, next: NewRunEvent): boolean {
  if (last?.type !== "content.delta" || next.type !== "content.delta") return false;
  if (last.node_run_id !== next.node_run_id) return false;
  if (last.data.index !== next.data.index || last.data.channel !== next.data.channel) return false;
  if (last.data.text === undefined || next.data.text === undefined) return false;
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
async function commit(
  sql: Sql,
  batch: readonly { run: OpenRun; pending: Pending }[],
  now: Date,
): Promise<ReadonlySet<string>> {
  return sql.begin(async (transaction) => {
    const rows = await transaction<{ id: string }[]>`
      update run
      set last_event_id = coalesce(step.last_event_id, run.last_event_id),
          status = coalesce(step.status, run.status),
          output = coalesce(step.output::json, run.output),
          error = coalesce(step.error::json, run.error),
          usage = coalesce(step.usage::json, run.usage),
          active_ms = coalesce(step.active_ms, run.active_ms),
          wake_at = case when step.status is null then run.wake_at else step.wake_at end,
          lease_until = case when step.status is null then run.lease_until end,
          ended_at = case when step.status in ('succeeded', 'failed', 'canceled') then ${now}::timestamptz end
      from unnest(
        ${batch.map(({ run }) => run.id)}::uuid[], ${batch.map(({ run }) => run.epoch)}::integer[],
        ${batch.map(({ pending }) => pending.events.at(-1)?.id ?? null)}::integer[],
        ${batch.map(({ pending }) => pending.left?.outcome.status ?? null)}::text[],
        ${batch.map(({ pending }) => outputOf(pending))}::text[], ${batch.map(({ pending }) => errorOf(pending))}::text[],
        ${batch.map(({ pending }) => usageOf(pending))}::text[],
        ${batch.map(({ pending }) => pending.left?.activeMs ?? null)}::double precision[],
        ${batch.map(({ pending }) => wakeAtOf(pending))}::timestamptz[]
      ) as step (id, epoch, last_event_id, status, output, error, usage, active_ms, wake_at)
      where run.id = step.id and run.epoch = step.epoch and run.status = 'running'
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
    await addCallbackJobs(transaction, written);
    return held;
  });
}

const outputOf = ({ left }: Pending) =>
  left?.outcome.status === "succeeded" ? JSON.stringify(left.outcome.output) : null;
const errorOf = ({ left }: Pending) => (left?.outcome.status === "failed" ? JSON.stringify(left.outcome.error) : null);
const usageOf = ({ left }: Pending) => (left ? JSON.stringify(left.outcome.usage) : null);
const wakeAtOf = ({ left }: Pending) =>
  left && "wakeAt" in left.outcome ? (left.outcome.wakeAt?.toISOString() ?? null) : null;

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

async function upsertNodes(
  sql: AnySql,
  batch: readonly { run: OpenRun; pending: Pending }[],
  now: Date,
): Promise<void> {
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

/** After the nodes, which the rows point at. */
async function insertAsked(
  sql: AnySql,
  batch: readonly { run: OpenRun; pending: Pending }[],
  now: Date,
): Promise<void> {
  for (const { run, pending } of batch) {
    for (const { id, nodeRunId, nodeId, question, onTimeout, expiresAt } of pending.asked) {
      await sql`
        insert into input_request
          (id, run_id, node_run_id, node_id, type, prompt, params, editable_params, params_schema, response_schema,
           status, on_timeout, expires_at, created_at)
        values
          (${id}, ${run.id}, ${nodeRunId}, ${nodeId}, ${question.type}, ${question.prompt},
           ${JSON.stringify(question.params)}::text::json, ${question.editable_params}::text[],
           ${question.params_schema ? JSON.stringify(question.params_schema) : null}::text::json,
           ${question.response_schema ? JSON.stringify(question.response_schema) : null}::text::json,
           'pending', ${onTimeout}, ${expiresAt ?? null}, ${now})`;
    }
  }
}

/** In the same transaction as the end: a callback is never forgotten, and never sent for a run that did not end. */
async function addCallbackJobs(sql: AnySql, batch: readonly { run: OpenRun; pending: Pending }[]): Promise<void> {
  const ended = batch
    .filter(({ pending }) => pending.left && !("wakeAt" in pending.left.outcome))
    .map(({ run }) => run.id);
  if (ended.length === 0) return;
  await sql`
    select graphile_worker.add_job('deliver_callbacks', json_build_object('run_id', id), job_key := 'callbacks:' || id)
    from unnest(${ended}::uuid[]) as ended (id)
    where exists (select 1 from callback where callback.run_id = ended.id and attempted_at is null)`;
}
