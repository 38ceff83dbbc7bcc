/**
 * The engine of one worker: claims runs, executes them side by side, renews their leases and gives
 * them back when the worker stops.
 */
import type { Bus } from "#bus/bus.ts";
import type { Logger } from "#http/logger.ts";
import type { Fragment, Sql } from "#store/sql.ts";
import type { NodeDeps } from "#workflows/nodes/node_kind.ts";
import { canceledBy, cancelMarked } from "../run_cancel.ts";
import type { RunMetrics } from "../run_metrics.ts";
import { publishCanceled } from "../run_news.ts";
import { answeredWhileParking, enqueueRuns, type RunControl, runControlTopic, unparkRuns } from "../run_queue.ts";
import { type Deadline, statementDeadline, within } from "./deadline.ts";
import { openInputRequests } from "./input_answers.ts";
import { createRecorder } from "./recorder.ts";
import { type ClaimedRun, createRunClaims, leaseRenewalMs, renewLeases } from "./run_claim.ts";
import { type Ending, type ExecutingRun, executeRun } from "./run_executor.ts";
import { type FreedPlace, noteWaiting, wakeWaiting } from "./run_places.ts";

/** Runs that one worker executes at once; what is over stays pending for it or for others. */
export const runsMax = 1000;

export interface RunEngineDeps {
  sql: Sql;
  bus: Bus;
  logger: Logger;
  now(): Date;
  newId(): string;
  workerId: string;
  /** After which a commit that nobody answered has failed. */
  commitDeadline?: Deadline;
  nodeDeps(claimed: ClaimedRun): NodeDeps;
  metrics?: RunMetrics;
}

export interface RunEngine {
  /** Takes the run up if it can be had; answers as soon as that is decided. */
  take(runId: string): Promise<void>;
  /** Runs under way, for metrics. */
  running(): number;
  /** Noted by them and not durable, for metrics. */
  unwrittenBytes(): number;
  /** Stops what is under way where it is and gives it back: other workers go on from the checkpoint. */
  stop(): Promise<void>;
}

export async function startRunEngine(deps: RunEngineDeps): Promise<RunEngine> {
  const { sql, bus, logger } = deps;
  const executing = new Map<string, { claimed: ClaimedRun; run: ExecutingRun }>();
  const claims = createRunClaims(deps);
  const freed: FreedPlace[] = [];
  let waking: Promise<void> | undefined;
  const onError = (message: string) => (err: unknown) => logger.error({ err }, message);
  const recorder = createRecorder({
    sql,
    bus,
    workerId: deps.workerId,
    deadline: deps.commitDeadline,
    now: deps.now,
    onError: onError("events not recorded; the runs are left"),
    metrics: deps.metrics,
  });
  let stopping = false;

  async function take(runId: string): Promise<void> {
    if (stopping || executing.has(runId) || executing.size >= runsMax) return;
    const claimed = (await claims.claim(runId)) ?? (await claimAgain(runId));
    if (!claimed) return;
    if (stopping) return giveBack(sql, [{ id: runId, epoch: claimed.run.epoch }], deps.workerId);
    const held: { run?: ExecutingRun } = {};
    if (claimed.run.attempt === 1) {
      deps.metrics?.claimed((deps.now().getTime() - claimed.run.created_at.getTime()) / 1000);
    }
    const writer = recorder.open(claimed.run, () => held.run?.stop("lost"));
    const run = executeRun(claimed, writer, {
      nodeDeps: deps.nodeDeps,
      inputRequests: (id) => within(statementDeadline, openInputRequests(sql, id)),
      now: deps.now,
      newId: deps.newId,
      workerId: deps.workerId,
      onInternalError: (err, at) => logger.error({ err, ...at }, "a run's step failed"),
    });
    held.run = run;
    executing.set(runId, { claimed, run });
    run.done
      .catch((err: unknown): Ending => {
        onError("run left: its executor failed")(err);
        return "left";
      })
      .then((ending) => {
        if (executing.get(runId)?.run === run) executing.delete(runId);
        if (!stopping) return afterwards(claimed, ending);
      })
      .catch(onError("waiting runs not woken; the sweeper wakes them"));
  }

  /** For a run that was refused: once it is noted, somebody else's end can no longer pass it by. */
  async function claimAgain(runId: string): Promise<ClaimedRun | undefined> {
    const waiting = await noteWaiting(sql, runId);
    if (!waiting) return undefined;
    const claimed = await claims.claim(runId);
    // The place that it was perhaps woken for is another one's.
    if (!claimed && waiting.waitsFor === "session")
      await wakeFor({ appId: waiting.appId, worked: true, sessionId: null });
    return claimed;
  }

  async function afterwards({ run }: ClaimedRun, ending: Ending): Promise<void> {
    if (ending === "left") return;
    if (ending === "parked") await followUp(sql`id = ${run.id}`);
    await wakeFor({ appId: run.app_id, worked: true, sessionId: ending === "ended" ? run.session_id : null });
  }

  /** Others may have waited for this one's place. Places that come free at once are one statement. */
  function wakeFor(place: FreedPlace): Promise<void> {
    freed.push(place);
    waking ??= wakeAll();
    return waking;
  }

  async function wakeAll(): Promise<void> {
    try {
      // What ended in one commit is told of in one turn.
      await new Promise((resolve) => setImmediate(resolve));
      while (freed.length > 0) await within(statementDeadline, wakeWaiting(sql, freed.splice(0)));
    } finally {
      waking = undefined;
    }
  }

  /** What came for runs while they were being parked or given back: nobody else heard it. */
  async function followUp(runs: Fragment): Promise<void> {
    publishCanceled(bus, await cancelMarked(sql, runs, deps.now()));
    await unparkRuns(sql, await answeredWhileParking(sql, runs));
  }

  async function renew(): Promise<void> {
    const held = [...executing].map(([id, { claimed, run }]) => ({
      id,
      epoch: claimed.run.epoch,
      activeMs: run.activeMs(),
      run,
    }));
    const renewed = await renewLeases(sql, held, { workerId: deps.workerId, now: deps.now() });
    for (const { id, run } of held) {
      const lease = renewed.get(id);
      // A run that is just being left is missing too; then stopping it changes nothing.
      if (!lease) run.stop("lost");
      else if (lease.cancelRequested) await cancel(id);
      else run.lookForAnswers();
    }
  }

  async function cancel(runId: string): Promise<void> {
    const [row] = await sql<{ cancel_reason: string | null; cancel_by: string | null }[]>`
      select cancel_reason, cancel_by from run where id = ${runId} and cancel_requested_at is not null`;
    if (row) executing.get(runId)?.run.stop("canceled", canceledBy(row));
  }

  const unsubscribe = await bus.subscribe(runControlTopic, (payload) => {
    const control = JSON.parse(payload) as RunControl;
    if (control.is === "answered") executing.get(control.run_id)?.run.lookForAnswers();
    else if (executing.has(control.run_id))
      cancel(control.run_id).catch(onError("cancel not read; the next beat does"));
  });
  let renewing: Promise<void> | undefined;
  const timer = setInterval(() => {
    renewing ??= within(statementDeadline, renew())
      .catch(onError("leases not renewed"))
      .finally(() => {
        renewing = undefined;
      });
  }, leaseRenewalMs);

  return {
    take,
    running: () => executing.size,
    unwrittenBytes: () => recorder.unwrittenBytes(),
    async stop() {
      stopping = true;
      clearInterval(timer);
      await unsubscribe().catch(onError("still subscribed"));
      await renewing;
      const held = [...executing].map(([id, { claimed, run }]) => ({ id, epoch: claimed.run.epoch, run }));
      for (const { run } of held) run.stop("shutdown");
      await Promise.all(held.map(({ run }) => run.done.catch(() => undefined)));
      await waking?.catch(() => undefined);
      await recorder.close();
      await giveBack(sql, held, deps.workerId);
      await followUp(sql`id = any (${held.map(({ id }) => id)}::uuid[])`);
    },
  };
}

/** Others need not wait for the leases to run out. */
async function giveBack(sql: Sql, held: readonly { id: string; epoch: number }[], workerId: string): Promise<void> {
  if (held.length === 0) return;
  await sql.begin(async (transaction) => {
    const runs = await transaction<{ id: string; generation: number }[]>`
      with held as materialized (
        select run.id from run
        join unnest(${held.map(({ id }) => id)}::uuid[], ${held.map(({ epoch }) => epoch)}::integer[]) as lease (id, epoch)
          on run.id = lease.id and run.epoch = lease.epoch
        where run.status = 'running' and run.worker_id = ${workerId} order by run.id for update of run)
      update run set status = 'pending', lease_until = null, generation = generation + 1
      from held where run.id = held.id
      returning run.id, run.generation`;
    await enqueueRuns(transaction, runs);
  });
}
