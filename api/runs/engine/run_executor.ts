/**
 * Executes one claimed run from its checkpoint to its end, or to the point where it only waits.
 * What to do next is `nextSteps`' decision; this file has the effects: it starts nodes, keeps their
 * states, tries failed ones again and notes everything with the run's writer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { NewRunEvent, RunError, RunUsage } from "#contracts/run_event.ts";
import { runLimits } from "#contracts/run_event.ts";
import { defaultHandle, type WorkflowNode } from "#contracts/workflow.ts";
import { resolveValue } from "../references.ts";
import type { NodeRunRow } from "../run_rows.ts";
import { type Graph, graphOf } from "../workflow_graph.ts";
import { isNodeKind } from "../workflow_rules.ts";
import {
  type ExecuteNode,
  type InputAnswer,
  type NodeDeps,
  NodeError,
  type NodeResult,
  type RunContext,
} from "./node_kind.ts";
import { executors } from "./node_kinds.ts";
import type { RunWriter } from "./recorder.ts";
import type { ClaimedRun, ResolvedInput } from "./run_claim.ts";
import { handlesError, type NodeState, nextSteps } from "./stepper.ts";

/** A wait up to this long keeps the run in memory; a longer one parks it. */
const shortWaitMs = 2000;
const retryBackoffMsDefault = 500;
const retryBackoffMsMax = 60_000;
const reachesOut: ReadonlySet<string> = new Set(["http", "tool", "llm"]);

export interface ExecutorDeps {
  nodeDeps(claimed: ClaimedRun): NodeDeps;
  resolvedInputs(runId: string): Promise<ResolvedInput[]>;
  now(): Date;
  newId(): string;
  workerId: string;
  onInternalError(error: unknown, at: { run_id: string; node_id: string }): void;
}

/** Why a run is stopped from outside. */
export type StopReason = "canceled" | "timeout" | "lost" | "shutdown";

export interface ExecutingRun {
  /** Settles when the run has ended, is parked, or was lost. */
  done: Promise<void>;
  stop(reason: StopReason, by?: { reason?: string; by?: string }): void;
  /** Somebody answered: look for it. */
  lookForAnswers(): void;
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
  private readonly context: RunContext;
  private readonly usage: RunUsage;
  private readonly streamed: ReadonlySet<string>;
  private readonly abort = new AbortController();
  private readonly findings: Finding[] = [];
  private readonly claimedMs: number;
  private wakeUp: () => void = () => undefined;
  private woken = false;
  private stopped: { reason: StopReason; by?: { reason?: string; by?: string } } | undefined;

  constructor(claimed: ClaimedRun, writer: RunWriter, deps: ExecutorDeps) {
    const { run, definition } = claimed;
    this.claimed = claimed;
    this.writer = writer;
    this.deps = deps;
    this.nodeDeps = deps.nodeDeps(claimed);
    this.graph = graphOf(definition);
    this.claimedMs = deps.now().getTime();
    this.usage = run.usage ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
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
    const { run } = this.claimed;
    const leftMs = run.timeout_s * 1000 - run.active_ms;
    const timer = setTimeout(() => this.stop("timeout"), Math.max(0, Math.min(leftMs, 2 ** 31 - 1)));
    try {
      await this.begin();
      while (!this.isLeft()) {
        await this.writer.flush();
        if (!this.isLeft()) await this.nextFinding();
      }
      await this.writer.flush();
    } finally {
      clearTimeout(timer);
      this.abort.abort();
    }
  }

  stop(reason: StopReason, by?: { reason?: string; by?: string }): void {
    this.stopped ??= { reason, ...(by && { by }) };
    this.abort.abort();
    this.wake();
  }

  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  private left = false;
  private isLeft(): boolean {
    return this.left || this.stopped?.reason === "lost" || this.stopped?.reason === "shutdown";
  }

  /** The first step: restores the checkpoint of a run that was begun before. */
  private async begin(): Promise<void> {
    const { run, nodes } = this.claimed;
    const isParkedBefore = nodes.some(({ status }) => status === "waiting");
    const recovered = nodes.some(({ status }) => status === "running");
    if (run.attempt === 1 || recovered || !isParkedBefore) {
      this.append({
        type: "run.started",
        data: { attempt: run.attempt, worker: this.deps.workerId, ...(recovered && { recovered: true as const }) },
      });
    }
    for (const row of nodes) this.restore(row);
    if (isParkedBefore) await this.takeAnswers(true);
    for (const { row, waitsFor } of this.active.values()) {
      if (waitsFor !== "moment" || !row.wake_at) continue;
      const node = this.nodeOf(row.node_id);
      // A parked retry is tried again, a parked delay is over; one that is not due yet sleeps on.
      if (row.wake_at <= this.deps.now()) this.work(node, row, { woken: row.error === null });
      else this.sleepUntil(node, row, row.wake_at, row.error === null);
    }
    for (const { row, waitsFor } of [...this.active.values()]) {
      if (waitsFor === undefined && row.status === "running" && !this.started.has(row.node_id)) {
        this.work(this.nodeOf(row.node_id), { ...row, attempt: row.attempt + (recovered ? 1 : 0) });
      }
    }
    this.step();
  }

  private readonly started = new Set<string>();

  private restore(row: NodeRunRow): void {
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
    if (woken) await this.takeAnswers(false);
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
    const logged = this.claimed.policy.log_io ? { output } : {};
    const tooLarge = sizeProblem(output);
    if (tooLarge) {
      this.fail(node, row, tooLarge);
      return;
    }
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
    const id = this.deps.newId();
    const { timeout_s } = question;
    const expiresAt = timeout_s === undefined ? undefined : new Date(this.deps.now().getTime() + timeout_s * 1000);
    this.park(node, { ...row, status: "waiting", wake_at: null }, "input");
    const onTimeout = String(node.config?.on_timeout ?? "reject");
    this.writer.ask({ id, nodeRunId: row.id, nodeId: node.id, question, onTimeout, expiresAt });
    const { type, prompt, params, editable_params, response_schema } = question;
    this.append({
      type: "input.requested",
      ...this.of(row),
      data: {
        id,
        type,
        prompt,
        params,
        editable_params,
        node_id: node.id,
        allowed_decisions: type === "approval_request" ? ["approve", "reject"] : ["respond"],
        ...(expiresAt && { expires_at: expiresAt.toISOString() }),
        ...(response_schema && { response_schema }),
      },
    });
  }

  /** @param woken the node goes on after its own delay; false: it is tried again */
  private sleepUntil(node: WorkflowNode, row: NodeRunRow, until: Date, woken: boolean): void {
    const leftMs = until.getTime() - this.deps.now().getTime();
    if (leftMs > shortWaitMs) {
      this.park(node, { ...row, status: "waiting", wake_at: until }, "moment");
      return;
    }
    const waiting = { ...row, status: "running" as const, wake_at: null };
    this.active.set(node.id, { row: waiting, waitsFor: undefined });
    this.states.set(node.id, { is: "running" });
    this.writer.saveNode(waiting);
    this.started.add(node.id);
    sleep(Math.max(0, leftMs), undefined, { signal: this.abort.signal }).then(
      () => this.work(node, waiting, { woken }),
      () => undefined,
    );
  }

  private park(node: WorkflowNode, row: NodeRunRow, waitsFor: "input" | "moment"): void {
    this.active.set(node.id, { row, waitsFor });
    this.states.set(node.id, { is: "waiting" });
    this.writer.saveNode(row);
  }

  private finish(node: WorkflowNode, row: NodeRunRow): void {
    this.active.delete(node.id);
    this.writer.saveNode(row);
  }

  /** Hands answers to the nodes that asked. @param parked whether the run was taken up again for them */
  private async takeAnswers(parked: boolean): Promise<void> {
    const waiting = [...this.active.values()].some(({ waitsFor }) => waitsFor === "input");
    if (!waiting) return;
    const answers = await this.deps.resolvedInputs(this.claimed.run.id);
    let taken = 0;
    for (const answer of answers) {
      const entry = this.active.get(answer.node_id);
      if (entry?.waitsFor !== "input") continue;
      taken += 1;
      this.takeAnswer(entry.row, answer);
    }
    if (parked && taken > 0) this.append({ type: "run.resumed", data: {} });
  }

  private takeAnswer(row: NodeRunRow, { id, status, params, response }: ResolvedInput): void {
    const decision = status === "expired" ? "expired" : (response?.decision ?? "approve");
    const { comment, responded_by, feedback } = response ?? {};
    const changed = response?.params ?? {};
    this.append({
      type: "input.resolved",
      ...this.of(row),
      data: {
        input_request_id: id,
        decision,
        changed_params: Object.keys(changed),
        ...(responded_by !== undefined && { responded_by }),
        ...(comment !== undefined && { comment }),
      },
    });
    const answer: InputAnswer = {
      decision,
      params: { ...params, ...changed },
      ...(feedback !== undefined && { feedback }),
      ...(comment !== undefined && { comment }),
      ...(responded_by !== undefined && { responded_by }),
    };
    this.work(this.nodeOf(row.node_id), row, { answer });
  }

  /** Starts and skips what is due; ends or parks the run when nothing works any more. */
  private step(): void {
    if (this.isLeft()) return;
    const { start, skip, done, failedNode } = nextSteps(this.graph, this.states);
    if (failedNode !== undefined) {
      this.leaveFailed(failedNode);
      return;
    }
    for (const id of skip) this.skip(id);
    for (const id of start) this.start(this.nodeOf(id));
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

  private start(node: WorkflowNode): void {
    const row = this.newRow(node.id, "running");
    this.writer.saveNode(row);
    this.work(node, row);
  }

  private newRow(nodeId: string, status: NodeRunRow["status"]): NodeRunRow {
    const id = this.deps.newId();
    return {
      id,
      node_id: nodeId,
      attempt: 1,
      status,
      output: null,
      error: null,
      usage: null,
      handle: null,
      wake_at: null,
    };
  }

  /** Executes the node in the background; what comes of it is a finding. */
  private work(node: WorkflowNode, row: NodeRunRow, from: { answer?: InputAnswer; woken?: boolean } = {}): void {
    const running: NodeRunRow = { ...row, status: "running", wake_at: null };
    const startedMs = this.deps.now().getTime();
    this.active.set(node.id, { row: running, waitsFor: undefined });
    this.states.set(node.id, { is: "running" });
    this.started.add(node.id);
    const inputs = resolveInputs(node, this.context);
    if (!from.answer && !from.woken) {
      const input = this.claimed.policy.log_io ? { input: inputs } : {};
      const named = node.name === undefined ? {} : { name: node.name };
      this.append({ type: "node.started", ...this.of(running), data: { type: node.type, ...named, ...input } });
    }
    this.run(node, running, inputs, from).then(
      (result) => this.find({ node, result, startedMs }),
      (error: unknown) => this.find({ node, error }),
    );
  }

  private async run(
    node: WorkflowNode,
    row: NodeRunRow,
    inputs: Record<string, unknown>,
    { answer, woken = false }: { answer?: InputAnswer; woken?: boolean },
  ): Promise<NodeResult> {
    if (!isNodeKind(node.type)) throw new NodeError("unknown_node", `There is no node kind ${node.type}`);
    const timeout = node.timeout_s === undefined ? undefined : AbortSignal.timeout(node.timeout_s * 1000);
    const signal = timeout ? AbortSignal.any([this.abort.signal, timeout]) : this.abort.signal;
    // What reaches out is named by its node run: the name must outlive a crash before anybody hears it.
    if (reachesOut.has(node.type)) await this.writer.flush();
    const execute = executors[node.type] as ExecuteNode<typeof node.type>;
    const streams = (node.config?.stream ?? true) !== false && (this.streamed.size === 0 || this.streamed.has(node.id));
    const working = execute({
      config: (node.config ?? {}) as never,
      inputs,
      context: this.context,
      nodeRunId: row.id,
      streams,
      answer,
      woken,
      emit: (event) => {
        if (!signal.aborted) this.append({ ...event, ...this.of(row) } as NewRunEvent);
      },
      deps: this.nodeDeps,
      signal,
    });
    try {
      return await Promise.race([working, abortOf(signal)]);
    } catch (cause) {
      if (!timeout?.aborted) throw cause;
      throw new NodeError("node_timeout", `The node took longer than ${node.timeout_s} s`, { cause, retryable: true });
    }
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
    const tooLarge = sizeProblem(output);
    if (tooLarge) {
      this.end({ status: "failed", error: tooLarge });
      return;
    }
    this.end({ status: "succeeded", output });
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
    const duration_ms = this.claimed.run.active_ms + this.activeMs();
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
    if (asks) this.append({ type: "run.awaiting_input", data: { input_request_ids: [] } });
    this.leave({ status: asks ? "awaiting_input" : "pending", usage: this.usage, wakeAt });
  }

  private leave(outcome: Parameters<RunWriter["leave"]>[0]): void {
    this.left = true;
    this.writer.leave(outcome, this.claimed.run.active_ms + this.activeMs());
  }

  private activeMs(): number {
    return this.deps.now().getTime() - this.claimedMs;
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
    this.deps.onInternalError(cause, { run_id: this.claimed.run.id, node_id: node.id });
    return { code: "internal_error", message: "The node failed", node_id: node.id };
  }
}

function resolveInputs(node: WorkflowNode, context: RunContext): Record<string, unknown> {
  const entries = Object.entries(node.inputs ?? {}).map(([name, value]) => [
    name,
    resolveValue(value, context) ?? null,
  ]);
  return Object.fromEntries(entries);
}

/** An output is part of events and of the checkpoint: it is bounded like them. */
function sizeProblem(output: unknown): RunError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(output) ?? "");
  if (bytes <= runLimits.eventBytesMax) return undefined;
  return {
    code: "output_too_large",
    message: `Expected at most ${runLimits.eventBytesMax} bytes of output, got ${bytes}`,
  };
}

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
