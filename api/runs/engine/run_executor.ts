/**
 * Executes one claimed run from its checkpoint to its end, or to the point where it only waits.
 * What to do next is `nextSteps`' decision; this file has the effects: it starts nodes, keeps their
 * states, tries failed ones again and notes everything with the run's writer.
 */
import type { NewRunEvent, RunError, RunUsage } from "#contracts/run_event.ts";
import { defaultHandle, type WorkflowNode } from "#contracts/workflow.ts";
import type { NodeRunRow } from "../run_rows.ts";
import { type Graph, graphOf } from "../workflow_graph.ts";
import { answerOf, type InputRequestRow, requestedData, resolvedData } from "./input_answers.ts";
import { type InputAnswer, type NodeDeps, NodeError, type NodeResult, type RunContext } from "./node_kind.ts";
import { resolveInputs, runNode, sizeProblem } from "./node_runner.ts";
import type { RunWriter } from "./recorder.ts";
import type { ClaimedRun } from "./run_claim.ts";
import { handlesError, type NodeState, nextSteps } from "./stepper.ts";

/** A wait up to this long keeps the run in memory; a longer one parks it. */
const shortWaitMs = 2000;
const retryBackoffMsDefault = 500;
const retryBackoffMsMax = 60_000;
/** Workers may die; but a run over which so many died in a row is what kills them. */
const recoveriesMax = 10;
/** Longest time-out of a JavaScript timer. */
const timerMsMax = 2 ** 31 - 1;

export interface ExecutorDeps {
  nodeDeps(claimed: ClaimedRun): NodeDeps;
  /** Requests of nodes that have not finished. */
  inputRequests(runId: string): Promise<InputRequestRow[]>;
  now(): Date;
  newId(): string;
  workerId: string;
  onInternalError(error: unknown, at: { run_id: string; node_id?: string }): void;
}

/** Why a run is stopped from outside. */
export type StopReason = "canceled" | "timeout" | "lost" | "shutdown";

export interface ExecutingRun {
  /** Settles when the run has ended, is parked, or was lost. */
  done: Promise<void>;
  stop(reason: StopReason, by?: { reason?: string; by?: string }): void;
  /** Somebody answered: look for it. */
  lookForAnswers(): void;
  /** Milliseconds that the run has worked, earlier claims included. */
  activeMs(): number;
}

interface Active {
  row: NodeRunRow;
  /** Why it does not work at the moment. */
  waitsFor: "input" | "moment" | undefined;
}

/** What happened to a node while the run listened. */
type Finding = { node: WorkflowNode; result: NodeResult; startedMs: number } | { node: WorkflowNode; error: unknown };

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
  private readonly claimed: ClaimedRun;
  private readonly writer: RunWriter;
  private readonly deps: ExecutorDeps;
  private readonly nodeDeps: NodeDeps;
  private readonly graph: Graph;
  private readonly states = new Map<string, NodeState>();
  private readonly active = new Map<string, Active>();
  /** Answers that nodes which still work were given: one that is tried again asks no second time. */
  private readonly answers = new Map<string, InputAnswer>();
  /** Pending requests by node. */
  private readonly asked = new Map<string, string>();
  private readonly context: RunContext;
  private readonly usage: RunUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  private readonly streamed: ReadonlySet<string>;
  private readonly abort = new AbortController();
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly findings: Finding[] = [];
  private readonly claimedMs: number;
  private wakeUp: () => void = () => undefined;
  private woken = false;
  private left = false;
  private stopped: { reason: StopReason; by?: { reason?: string; by?: string } } | undefined;

  constructor(claimed: ClaimedRun, writer: RunWriter, deps: ExecutorDeps) {
    const { run, definition } = claimed;
    this.claimed = claimed;
    this.writer = writer;
    this.deps = deps;
    this.nodeDeps = deps.nodeDeps(claimed);
    this.graph = graphOf(definition);
    this.claimedMs = deps.now().getTime();
    if (claimed.canceled) this.stopped = { reason: "canceled", by: claimed.canceled };
    this.streamed = new Set(
      definition.nodes.flatMap(({ type, config }) =>
        type === "output" && config?.stream_from ? [String(config.stream_from)] : [],
      ),
    );
    this.context = {
      input: run.input,
      nodes: {},
      run: {
        id: run.id,
        ...(run.session_id !== null && { session_id: run.session_id }),
        ...(run.user_id !== null && { user_id: run.user_id }),
        metadata: run.metadata,
      },
    };
  }

  async execute(): Promise<void> {
    this.armTimeout();
    try {
      await this.begin();
      while (!this.isLeft()) {
        await this.writer.flush();
        if (!this.isLeft()) await this.nextFinding();
      }
      await this.writer.flush();
    } finally {
      this.clearTimers();
      this.abort.abort();
    }
  }

  stop(reason: StopReason, by?: { reason?: string; by?: string }): void {
    this.stopped ??= { reason, ...(by && { by }) };
    this.clearTimers();
    this.abort.abort();
    this.wake();
  }

  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  activeMs(): number {
    return this.claimed.run.active_ms + this.deps.now().getTime() - this.claimedMs;
  }

  private isLeft(): boolean {
    return this.left || this.stopped?.reason === "lost" || this.stopped?.reason === "shutdown";
  }

  /** The first step: restores the checkpoint of a run that was begun before. */
  private async begin(): Promise<void> {
    const { run, nodes } = this.claimed;
    for (const row of nodes) this.restore(row);
    if (this.stopped) {
      this.leaveStopped();
      return;
    }
    if (run.recoveries > recoveriesMax) {
      const message = `The run was given up: its worker ended ${run.recoveries} times in a row`;
      this.end({ status: "failed", error: { code: "worker_lost", message } });
      return;
    }
    const recovered = nodes.some(({ status }) => status === "running");
    const wasParked = !recovered && nodes.some(({ status }) => status === "waiting");
    if (!wasParked) {
      this.append({
        type: "run.started",
        data: { attempt: run.attempt, worker: this.deps.workerId, ...(recovered && { recovered: true as const }) },
      });
    }
    const unfinished = [...this.active.values()];
    if (unfinished.length > 0 && (await this.takeAnswers()) > 0 && wasParked) {
      this.append({ type: "run.resumed", data: {} });
    }
    if (this.stopped) return;
    for (const { row, waitsFor } of unfinished) {
      const node = this.nodeOf(row.node_id);
      // A parked retry is tried again, a parked delay is over; one that is not due yet sleeps on.
      if (waitsFor === "moment" && row.wake_at) this.sleepUntil(node, row, row.wake_at, row.error === null);
      if (waitsFor === undefined) this.work(node, { ...row, attempt: row.attempt + 1 });
    }
    this.step();
  }

  private restore(row: NodeRunRow): void {
    if (row.usage) this.addUsage(row.usage);
    switch (row.status) {
      case "succeeded":
        this.context.nodes[row.node_id] = { output: row.output };
        this.states.set(row.node_id, { is: "succeeded", handle: row.handle ?? defaultHandle });
        return;
      case "skipped":
      case "failed":
        if (row.status === "failed") this.context.nodes[row.node_id] = { output: { error: row.error } };
        this.states.set(row.node_id, { is: row.status });
        return;
      case "waiting":
        this.states.set(row.node_id, { is: "waiting" });
        this.active.set(row.node_id, { row, waitsFor: row.wake_at ? "moment" : "input" });
        return;
      case "running":
        this.states.set(row.node_id, { is: "running" });
        this.active.set(row.node_id, { row, waitsFor: undefined });
    }
  }

  /** Waits until a node has something to tell, somebody answered, or the run is stopped. */
  private async nextFinding(): Promise<void> {
    if (this.findings.length === 0 && !this.woken) {
      await new Promise<void>((resolve) => {
        this.wakeUp = resolve;
      });
    }
    const woken = this.woken;
    this.woken = false;
    if (this.stopped) {
      this.leaveStopped();
      return;
    }
    for (const finding of this.findings.splice(0)) this.take(finding);
    const waits = [...this.active.values()].some(({ waitsFor }) => waitsFor === "input");
    // An answer that is not read now is read at the next beat, or found when the run is parked.
    if (woken && waits) await this.takeAnswers().catch((error: unknown) => this.report(error));
    this.step();
  }

  private take(finding: Finding): void {
    const entry = this.active.get(finding.node.id);
    if (!entry) return;
    if ("error" in finding) this.takeError(finding.node, entry.row, finding.error);
    else this.takeResult(finding.node, entry.row, finding.result, finding.startedMs);
  }

  private takeResult(node: WorkflowNode, row: NodeRunRow, result: NodeResult, startedMs: number): void {
    if (result.is === "sleeping") {
      this.sleepUntil(node, row, result.until, true);
      return;
    }
    if (result.is === "asking") {
      this.askFor(node, row, result);
      return;
    }
    const duration_ms = this.deps.now().getTime() - startedMs;
    const { output, handle, usage } = result;
    if (usage) this.addUsage(usage);
    const tooLarge = sizeProblem(output, "output_too_large", "an output");
    if (tooLarge) {
      this.fail(node, { ...row, usage: usage ?? null }, { ...tooLarge, node_id: node.id });
      return;
    }
    const logged = this.claimed.policy.log_io ? { output } : {};
    this.finish(node, {
      ...row,
      status: "succeeded",
      output,
      handle,
      usage: usage ?? null,
      wake_at: null,
      error: null,
    });
    this.context.nodes[node.id] = { output };
    this.states.set(node.id, { is: "succeeded", handle });
    this.append({
      type: "node.completed",
      ...this.of(row),
      data: { ...logged, ...(usage && { usage }), duration_ms, ...(handle !== defaultHandle && { handle }) },
    });
  }

  private takeError(node: WorkflowNode, row: NodeRunRow, cause: unknown): void {
    if (this.abort.signal.aborted) return;
    const error = this.errorOf(node, cause);
    const attempts = node.retry?.max_attempts ?? 1;
    const retryable = cause instanceof NodeError && cause.retryable;
    if (!retryable || row.attempt >= attempts) {
      this.fail(node, row, error);
      return;
    }
    const base = node.retry?.backoff_ms ?? retryBackoffMsDefault;
    const delay_ms = Math.min(base * 2 ** (row.attempt - 1), retryBackoffMsMax);
    const next = { ...row, attempt: row.attempt + 1, error };
    this.append({ type: "node.retrying", ...this.of(row), data: { error, next_attempt: next.attempt, delay_ms } });
    this.sleepUntil(node, next, new Date(this.deps.now().getTime() + delay_ms), false);
  }

  private fail(node: WorkflowNode, row: NodeRunRow, error: RunError): void {
    const handled = handlesError(node.id, this.graph);
    this.finish(node, { ...row, status: "failed", error, output: null, wake_at: null });
    this.context.nodes[node.id] = { output: { error } };
    this.states.set(node.id, { is: "failed" });
    this.append({ type: "node.failed", ...this.of(row), data: { error, handled } });
  }

  private askFor(node: WorkflowNode, row: NodeRunRow, { question }: Extract<NodeResult, { is: "asking" }>): void {
    const { timeout_s } = question;
    const asked = {
      id: this.deps.newId(),
      nodeRunId: row.id,
      nodeId: node.id,
      question,
      onTimeout: String(node.config?.on_timeout ?? "reject"),
      expiresAt: timeout_s === undefined ? undefined : new Date(this.deps.now().getTime() + timeout_s * 1000),
    };
    const data = requestedData(asked);
    const tooLarge = sizeProblem(data, "event_too_large", "a request for input");
    if (tooLarge) {
      this.fail(node, row, { ...tooLarge, node_id: node.id });
      return;
    }
    const waiting: NodeRunRow = { ...row, status: "waiting", wake_at: null };
    this.suspend(node, waiting, "input");
    this.asked.set(node.id, asked.id);
    this.writer.ask(asked);
    this.append({ type: "input.requested", ...this.of(row), data });
  }

  /**
   * A long wait is one that the run can be parked for; in memory it ends by a timer all the same, as
   * other branches may go on for longer.
   * @param woken the node goes on after its own delay; false: it is tried again
   */
  private sleepUntil(node: WorkflowNode, row: NodeRunRow, until: Date, woken: boolean): void {
    const leftMs = Math.max(0, until.getTime() - this.deps.now().getTime());
    const isLong = leftMs > shortWaitMs;
    const waiting: NodeRunRow = isLong
      ? { ...row, status: "waiting", wake_at: until }
      : { ...row, status: "running", wake_at: null };
    this.suspend(node, waiting, isLong ? "moment" : undefined);
    this.after(leftMs, () => this.work(node, waiting, { woken }));
  }

  private suspend(node: WorkflowNode, row: NodeRunRow, waitsFor: Active["waitsFor"]): void {
    this.active.set(node.id, { row, waitsFor });
    this.states.set(node.id, { is: waitsFor ? "waiting" : "running" });
    this.writer.saveNode(row);
  }

  private finish(node: WorkflowNode, row: NodeRunRow): void {
    this.active.delete(node.id);
    this.answers.delete(node.id);
    this.asked.delete(node.id);
    this.writer.saveNode(row);
  }

  /** Hands answers to the nodes that asked. @returns how many went on with one */
  private async takeAnswers(): Promise<number> {
    const requests = await this.deps.inputRequests(this.claimed.run.id);
    if (this.stopped) return 0;
    let taken = 0;
    for (const request of requests) {
      const entry = this.active.get(request.node_id);
      if (!entry) continue;
      if (request.status === "pending") this.asked.set(request.node_id, request.id);
      else if (request.taken) this.answers.set(request.node_id, answerOf(request));
      else if (entry.waitsFor === "input") {
        taken += 1;
        this.takeAnswer(entry.row, request);
      }
    }
    return taken;
  }

  private takeAnswer(row: NodeRunRow, request: InputRequestRow): void {
    this.asked.delete(row.node_id);
    this.answers.set(row.node_id, answerOf(request));
    this.writer.takeAnswer(request.id);
    this.append({ type: "input.resolved", ...this.of(row), data: resolvedData(request) });
    this.work(this.nodeOf(row.node_id), row, { answered: true });
  }

  /** Starts and skips what is due; ends or parks the run when nothing works any more. */
  private step(): void {
    if (this.left || this.stopped) return;
    const { start, skip, done, failedNode } = nextSteps(this.graph, this.states);
    if (failedNode !== undefined) {
      this.leaveFailed(failedNode);
      return;
    }
    for (const id of skip) this.skip(id);
    for (const id of start) this.work(this.nodeOf(id), this.newRow(id, "running"));
    if (done) {
      this.leaveSucceeded();
      return;
    }
    const working = [...this.active.values()].some(({ waitsFor }) => waitsFor === undefined);
    if (!working && this.findings.length === 0) this.leaveParked();
  }

  private skip(id: string): void {
    const row = this.newRow(id, "skipped");
    this.states.set(id, { is: "skipped" });
    this.writer.saveNode(row);
    this.append({ type: "node.skipped", ...this.of(row), data: { reason: "No branch leads to this node" } });
  }

  private newRow(nodeId: string, status: NodeRunRow["status"]): NodeRunRow {
    const nothing = { output: null, error: null, usage: null, handle: null, wake_at: null };
    return { id: this.deps.newId(), node_id: nodeId, attempt: 1, status, ...nothing };
  }

  /** Executes the node in the background; what comes of it is a finding. One that goes on is not announced again. */
  private work(node: WorkflowNode, row: NodeRunRow, goesOn: { answered?: boolean; woken?: boolean } = {}): void {
    const running: NodeRunRow = { ...row, status: "running", wake_at: null };
    const startedMs = this.deps.now().getTime();
    this.suspend(node, running, undefined);
    const inputs = resolveInputs(node, this.context);
    if (!goesOn.answered && !goesOn.woken) this.announce(node, running, inputs);
    const streams = (node.config?.stream ?? true) !== false && (this.streamed.size === 0 || this.streamed.has(node.id));
    runNode(node, {
      inputs,
      context: this.context,
      nodeRunId: row.id,
      streams,
      answer: this.answers.get(node.id),
      woken: goesOn.woken ?? false,
      emit: (event) => this.append({ ...event, ...this.of(running) } as NewRunEvent),
      recorded: () => this.writer.flush(),
      deps: this.nodeDeps,
      signal: this.abort.signal,
    }).then(
      (result) => this.find({ node, result, startedMs }),
      (error: unknown) => this.find({ node, error }),
    );
  }

  private announce(node: WorkflowNode, row: NodeRunRow, inputs: Record<string, unknown>): void {
    const isLogged = this.claimed.policy.log_io && !sizeProblem(inputs, "event_too_large", "an event");
    const data = {
      type: node.type,
      ...(node.name !== undefined && { name: node.name }),
      ...(isLogged && { input: inputs }),
    };
    this.append({ type: "node.started", ...this.of(row), data });
  }

  private find(finding: Finding): void {
    this.findings.push(finding);
    this.wakeUp();
  }

  private leaveSucceeded(): void {
    const outputs = this.claimed.definition.nodes
      .filter(({ id, type }) => type === "output" && this.states.get(id)?.is === "succeeded")
      .map(({ id }) => this.context.nodes[id]?.output);
    const output: Record<string, unknown> = Object.assign({}, ...outputs);
    const tooLarge = sizeProblem(output, "output_too_large", "an output");
    if (tooLarge) this.end({ status: "failed", error: tooLarge });
    else this.end({ status: "succeeded", output });
  }

  private leaveFailed(nodeId: string): void {
    const { error } = (this.context.nodes[nodeId]?.output ?? {}) as { error?: RunError };
    this.end({
      status: "failed",
      error: error ?? { code: "internal_error", message: "The node failed", node_id: nodeId },
    });
  }

  private leaveStopped(): void {
    if (this.stopped?.reason === "canceled") this.end({ status: "canceled" });
    if (this.stopped?.reason !== "timeout") return;
    const message = `The run worked for longer than ${this.claimed.run.timeout_s} s`;
    this.end({ status: "failed", error: { code: "run_timeout", message } });
  }

  private end(
    outcome:
      | { status: "succeeded"; output: Record<string, unknown> }
      | { status: "failed"; error: RunError }
      | { status: "canceled" },
  ): void {
    this.abort.abort();
    const { usage } = this;
    const duration_ms = this.activeMs();
    if (outcome.status === "succeeded") {
      this.append({ type: "run.succeeded", data: { output: outcome.output, usage, duration_ms } });
    } else if (outcome.status === "failed") {
      this.append({ type: "run.failed", data: { error: outcome.error, usage, duration_ms } });
    } else {
      this.append({ type: "run.canceled", data: { ...this.stopped?.by, usage, duration_ms } });
    }
    this.leave({ ...outcome, usage });
  }

  private leaveParked(): void {
    const waiting = [...this.active.values()];
    const moments = waiting.flatMap(({ row, waitsFor }) =>
      waitsFor === "moment" && row.wake_at ? [row.wake_at.getTime()] : [],
    );
    const wakeAt = moments.length > 0 ? new Date(Math.min(...moments)) : undefined;
    const asks = waiting.some(({ waitsFor }) => waitsFor === "input");
    if (asks) this.append({ type: "run.awaiting_input", data: { input_request_ids: [...this.asked.values()] } });
    this.leave({ status: asks ? "awaiting_input" : "pending", usage: this.usage, wakeAt });
  }

  private leave(outcome: Parameters<RunWriter["leave"]>[0]): void {
    this.left = true;
    this.clearTimers();
    this.writer.leave(outcome, this.activeMs());
  }

  private append(event: NewRunEvent): void {
    if (!this.left) this.writer.append(event);
  }

  private of(row: NodeRunRow) {
    return { node_id: row.node_id, node_run_id: row.id, ...(row.attempt > 1 && { attempt: row.attempt }) };
  }

  private nodeOf(id: string): WorkflowNode {
    const node = this.graph.get(id)?.node;
    if (!node) throw new Error(`Run ${this.claimed.run.id} has a node ${id} that its version does not have`);
    return node;
  }

  private addUsage(usage: RunUsage): void {
    this.usage.prompt_tokens += usage.prompt_tokens;
    this.usage.completion_tokens += usage.completion_tokens;
    this.usage.total_tokens += usage.total_tokens;
    if (usage.cached_tokens) this.usage.cached_tokens = (this.usage.cached_tokens ?? 0) + usage.cached_tokens;
  }

  private errorOf(node: WorkflowNode, cause: unknown): RunError {
    if (cause instanceof NodeError) return { code: cause.code, message: cause.message, node_id: node.id };
    this.report(cause, node.id);
    return { code: "internal_error", message: "The node failed", node_id: node.id };
  }

  private report(error: unknown, nodeId?: string): void {
    this.deps.onInternalError(error, { run_id: this.claimed.run.id, ...(nodeId !== undefined && { node_id: nodeId }) });
  }

  /** Only time that the run works counts. */
  private armTimeout(): void {
    const leftMs = this.claimed.run.timeout_s * 1000 - this.activeMs();
    this.after(leftMs, () => this.stop("timeout"));
  }

  /** What is further away than a timer reaches is left to the sweeper, or to a later claim. */
  private after(delayMs: number, act: () => void): void {
    if (delayMs > timerMsMax) return;
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        act();
      },
      Math.max(0, delayMs),
    );
    this.timers.add(timer);
  }

  private clearTimers(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }
}
