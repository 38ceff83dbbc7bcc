/**
 * Executes one claimed run from its checkpoint to its end, or to the point where it only waits.
 * What to do next is `nextSteps`' decision; what happens to a node is in `node_steps.ts`, what goes on
 * inside of one in `nested_walks.ts`. Here is the run as a whole: one step after the other, until it is
 * left. Steps go ahead of the log as far as there is room; what reaches out of the house does not.
 */

import { addUsage, type RunError } from "#contracts/run_event.ts";
import { evaluationLimits, newBudget } from "#workflows/evaluation_budget.ts";
import type { WalkOutcome } from "#workflows/nodes/node_kind.ts";
import { graphOf } from "#workflows/workflow_graph.ts";
import type { RunOutcome } from "../run_rows.ts";
import { type Checkpoint, checkpointOf, restoreWalk } from "./checkpoint.ts";
import { answerOf } from "./input_answers.ts";
import { abandonNested, endNested, openNested } from "./nested_walks.ts";
import { sizeProblem } from "./node_runner.ts";
import {
  askFor,
  finishNode,
  resumeNode,
  skipNode,
  sleepUntil,
  startNode,
  takeAnswer,
  takeError,
} from "./node_steps.ts";
import type { RunWriter } from "./recorder.ts";
import type { ClaimedRun } from "./run_claim.ts";
import { type ExecutorDeps, type Finding, hasTooManyNodes, type RunScope } from "./run_scope.ts";
import { createRunTimers } from "./run_timers.ts";
import { nextSteps } from "./stepper.ts";
import { type ActiveNode, newWalk, outputOf, type Walk } from "./walk.ts";

/**
 * Workers may die; but a run over which four died before any of its nodes finished is what kills them.
 * Three kill -9 within one long node are survived: what people write cannot hold up a worker any more,
 * so a death is far more often the machine's fault than the run's.
 */
const recoveriesMax = 3;

/** Why a run is stopped from outside. */
export type StopReason = "canceled" | "timeout" | "lost" | "shutdown";

/** How an execution came to its end: with the run's, waiting, or with nothing durable to say. */
export type Ending = "ended" | "parked" | "left";

export interface ExecutingRun {
  done: Promise<Ending>;
  stop(reason: StopReason, by?: { reason?: string; by?: string }): void;
  /** Somebody answered: look for it. */
  lookForAnswers(): void;
  /** Milliseconds that the run has worked, earlier claims included. */
  activeMs(): number;
}

export function executeRun(claimed: ClaimedRun, writer: RunWriter, deps: ExecutorDeps): ExecutingRun {
  const execution = new RunExecution(claimed, writer, deps);
  return {
    done: execution.execute(),
    stop: (reason, by) => execution.stop(reason, by),
    lookForAnswers: () => execution.wake(),
    activeMs: () => execution.activeMs(),
  };
}

class RunExecution {
  readonly #scope: RunScope;
  readonly #walk: Walk;
  readonly #checkpoint: Checkpoint;
  readonly #findings: Finding[] = [];
  /** Restored, and not gone on yet. */
  readonly #restored: ActiveNode[] = [];
  readonly #claimedMs: number;
  #wakeUp: () => void = () => undefined;
  #woken = false;
  /** The next answer is the one that the run was parked for. */
  #resumes: boolean;
  #left = false;
  #ending: Ending = "left";
  #stopped: { reason: StopReason; by?: { reason?: string; by?: string } } | undefined;

  constructor(claimed: ClaimedRun, writer: RunWriter, deps: ExecutorDeps) {
    const { run, definition, nodes } = claimed;
    this.#claimedMs = deps.now().getTime();
    if (claimed.canceled) this.#stopped = { reason: "canceled", by: claimed.canceled };
    this.#checkpoint = checkpointOf(nodes);
    this.#resumes = this.#checkpoint.wasParked;
    this.#walk = newWalk(graphOf(definition), {
      input: run.input,
      nodes: {},
      run: {
        id: run.id,
        ...(run.session_id !== null && { session_id: run.session_id }),
        ...(run.user_id !== null && { user_id: run.user_id }),
        metadata: run.metadata,
      },
    });
    this.#scope = {
      claimed,
      writer,
      deps,
      nodeDeps: deps.nodeDeps(claimed),
      budget: newBudget("all of a run's expressions together", evaluationLimits.runStepsMax),
      timers: createRunTimers(),
      active: new Map(),
      changed: new Set(),
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      nodeRuns: nodes.length,
      append: (event) => {
        if (!this.#left) writer.append(event);
      },
      find: (finding) => {
        this.#findings.push(finding);
        this.#wakeUp();
      },
      report: (error, nodeId) =>
        deps.onInternalError(error, { run_id: run.id, ...(nodeId !== undefined && { node_id: nodeId }) }),
    };
  }

  async execute(): Promise<Ending> {
    const { writer, timers } = this.#scope;
    try {
      await this.#begin();
      while (!this.#isLeft()) {
        await writer.room();
        if (!this.#isLeft()) await this.#nextStep();
      }
      await writer.flush();
      return this.#stopped?.reason === "lost" ? "left" : this.#ending;
    } finally {
      timers.clear();
      this.#abort();
    }
  }

  stop(reason: StopReason, by?: { reason?: string; by?: string }): void {
    this.#stopped ??= { reason, ...(by && { by }) };
    this.#scope.timers.clear();
    this.#abort();
    this.wake();
  }

  wake(): void {
    this.#woken = true;
    this.#wakeUp();
  }

  activeMs(): number {
    return this.#scope.claimed.run.active_ms + this.#scope.deps.now().getTime() - this.#claimedMs;
  }

  #isLeft(): boolean {
    return this.#left || this.#stopped?.reason === "lost" || this.#stopped?.reason === "shutdown";
  }

  /** Ends whatever works, in whatever walk. */
  #abort(): void {
    this.#walk.abort.abort();
    for (const { walk } of this.#scope.active.values()) walk.abort.abort();
  }

  /** The first step: restores the checkpoint of a run that was begun before. */
  async #begin(): Promise<void> {
    const { claimed, deps, timers, usage, append } = this.#scope;
    const { run, nodes } = claimed;
    // Only time that the run works counts.
    timers.after(run.timeout_s * 1000 - this.activeMs(), () => this.stop("timeout"));
    for (const row of nodes) if (row.usage) addUsage(usage, row.usage);
    const rows = this.#checkpoint.inside(null).flatMap(([, own]) => own);
    this.#restored.push(...restoreWalk(this.#scope, this.#walk, rows));
    if (this.#stopped) {
      this.#leaveStopped();
      return;
    }
    if (run.recoveries > recoveriesMax) {
      const message = `The run was given up: its worker ended ${run.recoveries} times in a row`;
      this.#end({ status: "failed", error: { code: "worker_lost", message } });
      return;
    }
    const { wasInterrupted, wasParked } = this.#checkpoint;
    if (!wasParked) {
      const data = {
        attempt: run.attempt,
        worker: deps.workerId,
        ...(wasInterrupted && { recovered: true as const }),
      };
      append({ type: "run.started", data });
    }
    await this.#goOn();
  }

  /** Waits until a node has something to tell, somebody answered, or the run is stopped; and does what follows. */
  async #nextStep(): Promise<void> {
    if (this.#findings.length === 0 && !this.#woken) {
      await new Promise<void>((resolve) => {
        this.#wakeUp = resolve;
      });
    }
    if (this.#stopped) {
      this.#leaveStopped();
      return;
    }
    for (const finding of this.#findings.splice(0)) this.#take(finding);
    await this.#goOn();
  }

  #take(finding: Finding): void {
    const { of } = finding;
    if (this.#scope.active.get(of.row.id) !== of) return;
    if ("error" in finding) {
      abandonNested(this.#scope, of, "The node that it is inside of took too long");
      takeError(this.#scope, of, finding.error);
      return;
    }
    const { result, startedMs } = finding;
    if (result.is === "done") finishNode(this.#scope, of, result, startedMs);
    else if (result.is === "asking") askFor(this.#scope, of, result);
    else if (result.is === "sleeping") sleepUntil(this.#scope, of, result.until, true);
    else {
      const before = this.#checkpoint.inside(of.row.id);
      this.#restored.push(...openNested(this.#scope, of, { nesting: result.nesting, startedMs }, before));
    }
  }

  /** Hands out answers, goes on with what was restored, and takes the next steps. */
  async #goOn(): Promise<void> {
    const looks = this.#woken && [...this.#scope.active.values()].some(({ waitsFor }) => waitsFor === "input");
    this.#woken = false;
    const restored = this.#restored.splice(0);
    // Who waits for an answer goes on with it, or waits on.
    const due = restored.filter(({ waitsFor }) => waitsFor !== "input");
    if (restored.length > 0) await this.#takeAnswers();
    // An answer that is not read now is read at the next beat, or found when the run is parked.
    else if (looks) await this.#takeAnswers().catch((error: unknown) => this.#scope.report(error));
    if (this.#stopped) return;
    for (const active of due) resumeNode(this.#scope, active);
    this.#step();
  }

  async #takeAnswers(): Promise<void> {
    const { active, claimed, deps, append } = this.#scope;
    const requests = await deps.inputRequests(claimed.run.id);
    if (this.#stopped) return;
    let taken = 0;
    for (const request of requests) {
      const asking = active.get(request.node_run_id);
      if (!asking) continue;
      if (request.status === "pending") asking.askedId = request.id;
      else if (request.taken) asking.answer = answerOf(request);
      else if (asking.waitsFor === "input") {
        taken += 1;
        takeAnswer(this.#scope, asking, request);
      }
    }
    if (taken > 0 && this.#resumes) append({ type: "run.resumed", data: {} });
    if (taken > 0) this.#resumes = false;
  }

  /** Starts and skips what is due; ends or parks the run when nothing works any more. */
  #step(): void {
    if (this.#left || this.#stopped) return;
    const { active, changed } = this.#scope;
    // Walks that change by what ends here are visited by the same loop.
    for (const walk of changed) {
      changed.delete(walk);
      const outcome = this.#advance(walk);
      if (outcome === undefined) continue;
      if (!walk.inside) {
        this.#leaveWith(outcome);
        return;
      }
      endNested(this.#scope, walk, outcome);
    }
    if (hasTooManyNodes(this.#scope)) {
      const message = "The run has more node runs than a run may have";
      this.#end({ status: "failed", error: { code: "too_many_node_runs", message } });
      return;
    }
    const works = [...active.values()].some(({ waitsFor }) => waitsFor === undefined);
    if (!works && this.#findings.length === 0) this.#leaveParked();
  }

  /** @returns what the walk came to, once it has ended */
  #advance(walk: Walk): WalkOutcome | undefined {
    const { start, skip, done, failedNode } = nextSteps(walk.graph, walk.states);
    if (failedNode !== undefined) {
      const { error } = (walk.context.nodes[failedNode]?.output ?? {}) as { error?: RunError };
      return { error: error ?? { code: "internal_error", message: "The node failed", node_id: failedNode } };
    }
    for (const id of skip) skipNode(this.#scope, walk, id);
    for (const id of start) startNode(this.#scope, walk, id);
    return done ? { output: outputOf(walk) } : undefined;
  }

  #leaveWith(outcome: WalkOutcome): void {
    const tooLarge = "output" in outcome && sizeProblem(outcome.output, "output_too_large", "an output");
    if (tooLarge) this.#end({ status: "failed", error: tooLarge });
    else if ("error" in outcome) this.#end({ status: "failed", error: outcome.error });
    else this.#end({ status: "succeeded", output: outcome.output });
  }

  #leaveStopped(): void {
    if (this.#stopped?.reason === "canceled") this.#end({ status: "canceled" });
    if (this.#stopped?.reason !== "timeout") return;
    const message = `The run worked for longer than ${this.#scope.claimed.run.timeout_s} s`;
    this.#end({ status: "failed", error: { code: "run_timeout", message } });
  }

  #end(
    outcome:
      | { status: "succeeded"; output: Record<string, unknown> }
      | { status: "failed"; error: RunError }
      | { status: "canceled" },
  ): void {
    this.#abort();
    const { usage, append } = this.#scope;
    const duration_ms = this.activeMs();
    if (outcome.status === "succeeded") {
      append({ type: "run.succeeded", data: { output: outcome.output, usage, duration_ms } });
    } else if (outcome.status === "failed") {
      append({ type: "run.failed", data: { error: outcome.error, usage, duration_ms } });
    } else {
      append({ type: "run.canceled", data: { ...this.#stopped?.by, usage, duration_ms } });
    }
    this.#leave({ ...outcome, usage }, "ended");
  }

  #leaveParked(): void {
    const { active, usage, append } = this.#scope;
    const waiting = [...active.values()];
    const moments = waiting.flatMap(({ row, waitsFor }) =>
      waitsFor === "moment" && row.wake_at ? [row.wake_at.getTime()] : [],
    );
    const wakeAt = moments.length > 0 ? new Date(Math.min(...moments)) : undefined;
    const asks = waiting.some(({ waitsFor }) => waitsFor === "input");
    if (asks) {
      const input_request_ids = waiting.flatMap(({ askedId }) => (askedId === undefined ? [] : [askedId]));
      append({ type: "run.awaiting_input", data: { input_request_ids } });
    }
    this.#leave({ status: asks ? "awaiting_input" : "pending", usage, wakeAt }, "parked");
  }

  #leave(outcome: RunOutcome, ending: Ending): void {
    this.#left = true;
    this.#ending = ending;
    this.#scope.timers.clear();
    this.#scope.writer.leave(outcome, this.activeMs());
  }
}
