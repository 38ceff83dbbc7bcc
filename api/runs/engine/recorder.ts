/**
 * Writes what runs do: events, node states, inputs asked for, ends. All runs of a worker share one
 * line of group commits: what comes while a commit is under way goes into the next one, so the first
 * event of a node leaves at once and a burst is joined. Nothing is published before it is durable.
 *
 * What waits to be written is bounded while Postgres is slow: nodes that say more and more wait for
 * room, and so does a run before its next step. Within a step nothing waits, so that none is left half
 * done; a run can be above its bound by one step.
 *
 * Every commit carries each run's epoch. A worker that lost its lease writes nothing: its run is
 * reported to `onLost` and left to its new holder.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Bus } from "#bus/bus.ts";
import { type RunEventBatch, runTopic } from "#contracts/internal_runs.ts";
import type { NewRunEvent, RunEvent } from "#contracts/run_event.ts";
import type { Sql } from "#store/sql.ts";
import type { RunMetrics } from "../run_metrics.ts";
import type { NodeRunRow, RunOutcome } from "../run_rows.ts";
import { type Deadline, statementDeadline, within } from "./deadline.ts";
import type { AskedInput } from "./input_answers.ts";
import {
  commitSteps,
  jsonOf,
  jsonOfEvent,
  type LoggedEvent,
  nothingPending,
  type Pending,
  type Step,
} from "./step_commit.ts";

/** Deltas come out at most so often, each with those that came since: the first one after a pause at once. */
const deltaWaitMs = 10;
/** Far below what an event may have. */
const deltaCharactersMax = 16 * 1024;
/** Rows and size of one commit; what is over waits for the next one. */
const eventsMaxInCommit = 2000;
const bytesMaxInCommit = 4 * 1024 * 1024;
/** What may wait to be written, of one run and of all, before they are held up. */
const unwrittenBytesOfRunMax = 256 * 1024;
const unwrittenBytesMax = 32 * 1024 * 1024;
/** What a row or an event takes beside its text. */
const overheadBytes = 256;

/** One run's pen. Calls only note; `flush` answers when all that was noted is durable. */
export interface RunWriter {
  append(event: NewRunEvent): void;
  saveNode(row: NodeRunRow): void;
  ask(input: AskedInput): void;
  /**
   * `taken`: the answer to this request is in what was noted; after a crash it is not told again.
   * `canceled`: nobody waits for an answer any more.
   */
  closeInput(inputRequestId: string, as: "taken" | "canceled"): void;
  /** Ends or parks the run with the last events, and gives up the lease. Nothing may follow. */
  leave(outcome: RunOutcome, activeMs: number): void;
  flush(): Promise<void>;
  /** Settles when there is room for more: undefined where there is. Also when the run is lost. */
  room(): Promise<void> | undefined;
}

interface OpenRun {
  id: string;
  epoch: number;
  lastEventId: number;
  pending: Pending;
  /** Noted and not durable. */
  unwrittenBytes: number;
  /** What it noted last is being committed. */
  committing: boolean;
  lost: boolean;
  onLost(): void;
}

export interface Recorder {
  /** Noted by all runs and not durable. */
  unwrittenBytes(): number;
  open(run: { id: string; epoch: number; last_event_id: number }, onLost: () => void): RunWriter;
  /** Writes what is noted, then stops. */
  close(): Promise<void>;
}

export interface RecorderDeps {
  sql: Sql;
  bus: Bus;
  workerId: string;
  /** A commit that takes longer has failed: its runs are lost. */
  deadline?: Deadline | undefined;
  now(): Date;
  onError(error: unknown): void;
  /** How long each commit took, and each run that was lost. */
  metrics?: Pick<RunMetrics, "committed" | "lost"> | undefined;
}

export function createRecorder(deps: RecorderDeps): Recorder {
  const dirty = new Set<OpenRun>();
  let underWay: Promise<void> | undefined;
  let scheduled = false;
  let committedMs = 0;
  let unwrittenBytes = 0;
  let roomMade: () => void = () => undefined;
  let moreRoom = nextRoom();

  function nextRoom(): Promise<void> {
    return new Promise((resolve) => {
      roomMade = resolve;
    });
  }

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
    const batch: Step<OpenRun>[] = [];
    let events = 0;
    let bytes = 0;
    for (const run of dirty) {
      if (events >= eventsMaxInCommit || bytes >= bytesMaxInCommit) break;
      dirty.delete(run);
      batch.push({ run, pending: run.pending });
      events += run.pending.events.length;
      bytes += run.pending.bytes;
      run.pending = nothingPending();
      run.committing = true;
    }
    const beganMs = performance.now();
    const held = await commitBatch(batch);
    deps.metrics?.committed((performance.now() - beganMs) / 1000);
    for (const { run, pending } of batch) {
      run.committing = false;
      count(run, -pending.bytes);
      if (!held.has(run.id)) lose(run);
      else if (pending.events.length > 0) publish(deps.bus, run.id, pending.events);
    }
    roomMade();
    moreRoom = nextRoom();
  }

  /** @returns the runs that were written; the others are left to whoever takes their leases over */
  async function commitBatch(batch: readonly Step<OpenRun>[]): Promise<ReadonlySet<string>> {
    try {
      const written = commitSteps(deps.sql, batch, { workerId: deps.workerId, now: deps.now() });
      return await within(deps.deadline ?? statementDeadline, written);
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

  function count(run: OpenRun, bytes: number): void {
    run.unwrittenBytes += bytes;
    unwrittenBytes += bytes;
  }

  function lose(run: OpenRun): void {
    dirty.delete(run);
    if (run.lost) return;
    run.lost = true;
    deps.metrics?.lost();
    count(run, -run.pending.bytes);
    run.pending = nothingPending();
    run.onLost();
  }

  const isFull = (run: OpenRun) =>
    !run.lost && (run.unwrittenBytes > unwrittenBytesOfRunMax || unwrittenBytes > unwrittenBytesMax);

  return {
    unwrittenBytes: () => unwrittenBytes,
    open({ id, epoch, last_event_id }, onLost) {
      const run: OpenRun = {
        id,
        epoch,
        lastEventId: last_event_id,
        pending: nothingPending(),
        unwrittenBytes: 0,
        committing: false,
        lost: false,
        onLost,
      };
      const note = (bytes: number, urgent: boolean) => {
        run.pending.bytes += bytes;
        count(run, bytes);
        dirty.add(run);
        schedule(urgent);
      };
      return {
        append(event) {
          if (run.lost) return;
          const text = event.type === "content.delta" ? (event.data.text ?? "") : undefined;
          if (joinDelta(run.pending.events.at(-1), event)) {
            note(2 * (text?.length ?? 0), false);
            return;
          }
          run.lastEventId += 1;
          const logged = { id: run.lastEventId, run_id: id, created_at: deps.now().toISOString(), ...event };
          // A delta may still grow, and is written as JSON when it is committed.
          const json = text === undefined ? JSON.stringify(logged) : undefined;
          run.pending.events.push({ event: logged, json });
          note(2 * (json ?? text ?? "").length + overheadBytes, text === undefined);
        },
        saveNode(row) {
          if (run.lost) return;
          const node = { row, output: jsonOf(row.output) };
          run.pending.nodes.set(row.id, node);
          note(2 * (node.output?.length ?? 0) + overheadBytes, true);
        },
        ask(input) {
          if (run.lost) return;
          run.pending.asked.push(input);
          note(2 * JSON.stringify(input.question).length + overheadBytes, true);
        },
        closeInput(inputRequestId, as) {
          if (run.lost) return;
          run.pending.closed.push({ id: inputRequestId, as });
          note(overheadBytes, true);
        },
        leave(outcome, activeMs) {
          if (run.lost) return;
          run.pending.left = { outcome, activeMs };
          note(overheadBytes, true);
        },
        async flush() {
          while (!run.lost && (dirty.has(run) || run.committing)) {
            start();
            await underWay;
          }
        },
        room: () => (isFull(run) ? waitForRoom(run) : undefined),
      };
    },
    async close() {
      while (dirty.size > 0 || underWay) {
        start();
        await underWay;
      }
    },
  };

  async function waitForRoom(run: OpenRun): Promise<void> {
    while (isFull(run)) await moreRoom;
  }
}

/** Answered by Postgres, as against a connection that broke: nothing of it is written. */
const isRefusal = (error: unknown) => error instanceof Error && error.name === "PostgresError";

/** Adds a delta to the one before it, where both are of one node's same message. */
function joinDelta(before: LoggedEvent | undefined, next: NewRunEvent): boolean {
  const last: RunEvent | undefined = before?.event;
  if (last?.type !== "content.delta" || next.type !== "content.delta") return false;
  if (last.node_run_id !== next.node_run_id) return false;
  if (last.data.index !== next.data.index || last.data.channel !== next.data.channel) return false;
  if (last.data.text === undefined || next.data.text === undefined) return false;
  if (last.data.text.length + next.data.text.length > deltaCharactersMax) return false;
  last.data = { ...last.data, text: last.data.text + next.data.text };
  return true;
}

function publish(bus: Bus, runId: string, events: readonly LoggedEvent[]): void {
  const batch: RunEventBatch = {
    sent_at_ms: Date.now(),
    events: events.map((logged) => ({ id: logged.event.id, type: logged.event.type, json: jsonOfEvent(logged) })),
  };
  // A lost publish is no loss: readers see the gap, or ask again.
  bus.publish(runTopic(runId), JSON.stringify(batch)).catch(() => undefined);
}
