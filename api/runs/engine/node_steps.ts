/** What happens to a node from its start to its end: executed, tried again, put to sleep, asked about, finished. */
import { addUsage, type NewRunEvent, type RunError, type RunUsage } from "#contracts/run_event.ts";
import { defaultHandle } from "#contracts/workflow.ts";
import { EvaluationError, evaluationLimits, newBudget } from "#workflows/evaluation_budget.ts";
import { kindOf } from "#workflows/nodes/catalogue.ts";
import { NodeError, type NodeResult } from "#workflows/nodes/node_kind.ts";
import type { NodeRunRow } from "../run_rows.ts";
import { answerOf, type InputRequestRow, requestedData, resolvedData } from "./input_answers.ts";
import { resolveInputs, runNode, sizeProblem } from "./node_runner.ts";
import type { RunScope } from "./run_scope.ts";
import { handlesError } from "./stepper.ts";
import { type ActiveNode, newActive, originOf, outermostNode, type Walk } from "./walk.ts";

type ModelCompleted = Extract<NewRunEvent, { type: "model.completed" }>["data"];

/** A wait up to this long keeps the run in memory; a longer one parks it. */
const shortWaitMs = 2000;
const retryBackoffMsDefault = 500;
const retryBackoffMsMax = 60_000;

type Done = Extract<NodeResult, { is: "done" }>;
type Asking = Extract<NodeResult, { is: "asking" }>;

export function startNode(run: RunScope, walk: Walk, nodeId: string): void {
  work(run, newActive(walk, newRow(run, walk, nodeId, "running")));
}

export function skipNode(run: RunScope, walk: Walk, nodeId: string): void {
  const row = newRow(run, walk, nodeId, "skipped");
  walk.states.set(nodeId, { is: "skipped" });
  run.writer.saveNode(row);
  run.append({ type: "node.skipped", ...originOf(row, walk), data: { reason: "No branch leads to this node" } });
}

/** Goes on with a node that was active when an earlier claim ended. */
export function resumeNode(run: RunScope, active: ActiveNode): void {
  const { row, waitsFor } = active;
  // A parked retry is tried again, a parked delay is over; one that is not due yet sleeps on.
  if (waitsFor === "moment" && row.wake_at) sleepUntil(run, active, row.wake_at, row.error === null);
  if (waitsFor !== undefined) return;
  const reopened = kindOf(active.node)?.isContainer === true;
  if (!reopened) active.row = { ...row, attempt: row.attempt + 1 };
  work(run, active, { reopened });
}

/** Executes the node in the background; what comes of it is a finding. One that goes on is not announced again. */
function work(
  run: RunScope,
  active: ActiveNode,
  goesOn: { answered?: boolean; woken?: boolean; reopened?: boolean } = {},
): void {
  const { node, walk, answer } = active;
  const startedMs = run.deps.now().getTime();
  suspend(run, active, { ...active.row, status: "running", wake_at: null }, undefined);
  const budget = newBudget("a node's expressions", evaluationLimits.nodeStepsMax, run.budget);
  let inputs: Record<string, unknown>;
  try {
    inputs = resolveInputs(node, walk.context, budget);
  } catch (error) {
    run.find({ of: active, error });
    return;
  }
  if (!goesOn.answered && !goesOn.woken && !goesOn.reopened) announce(run, active, inputs);
  const origin = originOf(active.row, walk);
  runNode(node, {
    inputs,
    context: walk.context,
    budget,
    nodeRunId: active.row.id,
    streams: isHeard(run, active),
    answer,
    woken: goesOn.woken ?? false,
    emit: (event) => {
      if (event.type === "model.completed") countUsage(run, active, paidUsage(event.data));
      run.append({ ...event, ...origin } as NewRunEvent);
      return run.writer.room();
    },
    recorded: () => run.writer.flush(),
    deps: run.nodeDeps,
    signal: walk.abort.signal,
  }).then(
    (result) => run.find({ of: active, result, startedMs }),
    (error: unknown) => run.find({ of: active, error }),
  );
}

/** What a request took, with its cost where it has one. */
function paidUsage({ usage, cost, currency, provider, model }: ModelCompleted): RunUsage {
  if (cost === 0) return usage;
  const unknown = cost === null ? [`llm ${provider} ${model}`] : [];
  return { ...usage, cost: { currency, amount: cost, known: cost ?? 0, unknown } };
}

/** Attempts that fail are paid for as well: what each request took is kept with the node, in the commit that tells of it. */
function countUsage(run: RunScope, active: ActiveNode, usage: RunUsage): void {
  if (run.active.get(active.row.id) !== active) return;
  addUsage(run.usage, usage);
  const sum = active.row.usage ? { ...active.row.usage } : { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  addUsage(sum, usage);
  active.row = { ...active.row, usage: sum };
  run.writer.saveNode(active.row);
}

function announce(run: RunScope, { node, row, walk }: ActiveNode, inputs: Record<string, unknown>): void {
  const isLogged = run.claimed.policy.log_io && !sizeProblem(inputs, "event_too_large", "an event");
  const data = {
    type: node.type,
    ...(node.name !== undefined && { name: node.name }),
    ...(isLogged && { input: inputs }),
  };
  run.append({ type: "node.started", ...originOf(row, walk), data });
}

/** `stream_from` of the run's output nodes chooses who is heard: a node, and all inside of it. Without any, everybody is. */
function isHeard({ claimed }: RunScope, { node, walk }: ActiveNode): boolean {
  if (node.config?.stream === false) return false;
  const chosen = claimed.definition.nodes.flatMap(({ type, config }) =>
    type === "output" && config?.stream_from ? [String(config.stream_from)] : [],
  );
  return chosen.length === 0 || chosen.includes(outermostNode(walk, node.id));
}

export function finishNode(run: RunScope, active: ActiveNode, { output, handle }: Done, startedMs: number): void {
  const { node, row, walk } = active;
  const duration_ms = run.deps.now().getTime() - startedMs;
  const tooLarge = sizeProblem(output, "output_too_large", "an output");
  if (tooLarge) {
    failNode(run, active, { ...tooLarge, node_id: node.id });
    return;
  }
  const logged = run.claimed.policy.log_io ? { output } : {};
  settle(run, active, { ...row, status: "succeeded", output, handle, error: null });
  walk.context.nodes[node.id] = { output };
  walk.states.set(node.id, { is: "succeeded", handle });
  run.append({
    type: "node.completed",
    ...originOf(row, walk),
    data: {
      ...logged,
      ...(row.usage && { usage: row.usage }),
      duration_ms,
      ...(handle !== defaultHandle && { handle }),
    },
  });
}

/** Tries the node again where that may help, and as often as it may be tried. */
export function takeError(run: RunScope, active: ActiveNode, cause: unknown): void {
  const { node, row, walk } = active;
  if (walk.abort.signal.aborted) return;
  const error = errorOf(run, active, cause);
  const retryable = cause instanceof NodeError && cause.retryable;
  if (!retryable || row.attempt >= (node.retry?.max_attempts ?? 1)) {
    failNode(run, active, error);
    return;
  }
  const base = node.retry?.backoff_ms ?? retryBackoffMsDefault;
  const delay_ms = Math.min(base * 2 ** (row.attempt - 1), retryBackoffMsMax);
  const next_attempt = row.attempt + 1;
  run.append({ type: "node.retrying", ...originOf(row, walk), data: { error, next_attempt, delay_ms } });
  active.row = { ...row, attempt: next_attempt, error };
  sleepUntil(run, active, new Date(run.deps.now().getTime() + delay_ms), false);
}

export function failNode(run: RunScope, active: ActiveNode, error: RunError): void {
  const { node, row, walk } = active;
  settle(run, active, { ...row, status: "failed", error, output: null });
  walk.context.nodes[node.id] = { output: { error } };
  walk.states.set(node.id, { is: "failed" });
  const handled = handlesError(node.id, walk.graph);
  run.append({ type: "node.failed", ...originOf(row, walk), data: { error, handled } });
}

export function askFor(run: RunScope, active: ActiveNode, { question }: Asking): void {
  const { node, row, walk } = active;
  const { timeout_s } = question;
  const asked = {
    id: run.deps.newId(),
    nodeRunId: row.id,
    nodeId: node.id,
    question,
    onTimeout: String(node.config?.on_timeout ?? "reject"),
    expiresAt: timeout_s === undefined ? undefined : new Date(run.deps.now().getTime() + timeout_s * 1000),
  };
  const data = requestedData(asked);
  const tooLarge = sizeProblem(data, "event_too_large", "a request for input");
  if (tooLarge) {
    failNode(run, active, { ...tooLarge, node_id: node.id });
    return;
  }
  suspend(run, active, { ...row, status: "waiting", wake_at: null }, "input");
  active.askedId = asked.id;
  run.writer.ask(asked);
  run.append({ type: "input.requested", ...originOf(row, walk), data });
}

export function takeAnswer(run: RunScope, active: ActiveNode, request: InputRequestRow): void {
  active.askedId = undefined;
  active.answer = answerOf(request);
  run.writer.closeInput(request.id, "taken");
  run.append({ type: "input.resolved", ...originOf(active.row, active.walk), data: resolvedData(request) });
  work(run, active, { answered: true });
}

/**
 * A long wait is one that the run can be parked for; in memory it ends by a timer all the same, as
 * other branches may go on for longer.
 * @param woken the node goes on after its own delay; false: it is tried again
 */
export function sleepUntil(run: RunScope, active: ActiveNode, until: Date, woken: boolean): void {
  const { row } = active;
  const leftMs = Math.max(0, until.getTime() - run.deps.now().getTime());
  if (leftMs > shortWaitMs) suspend(run, active, { ...row, status: "waiting", wake_at: until }, "moment");
  else suspend(run, active, { ...row, status: "running", wake_at: null }, undefined);
  run.timers.after(leftMs, () => {
    if (run.active.get(row.id) === active) work(run, active, { woken });
  });
}

/** Ends a node whose walk goes no further: nobody waits for it any more. */
export function abandonNode(run: RunScope, active: ActiveNode, error: RunError): void {
  const { node, row, walk, askedId } = active;
  if (askedId !== undefined) {
    run.writer.closeInput(askedId, "canceled");
    run.append({
      type: "input.resolved",
      ...originOf(row, walk),
      data: { input_request_id: askedId, decision: "canceled", changed_params: [] },
    });
  }
  const own = { ...error, node_id: node.id };
  settle(run, active, { ...row, status: "failed", error: own, output: null });
  run.append({ type: "node.failed", ...originOf(row, walk), data: { error: own, handled: true } });
}

/** What it waits for, or undefined where it works, is noted with its row. */
export function suspend(run: RunScope, active: ActiveNode, row: NodeRunRow, waitsFor: ActiveNode["waitsFor"]): void {
  active.row = row;
  active.waitsFor = waitsFor;
  active.walk.states.set(active.node.id, { is: row.status === "waiting" ? "waiting" : "running" });
  run.active.set(row.id, active);
  run.writer.saveNode(row);
}

function settle(run: RunScope, active: ActiveNode, row: NodeRunRow): void {
  run.active.delete(row.id);
  run.changed.add(active.walk);
  run.writer.saveNode({ ...row, wake_at: null });
}

function newRow(run: RunScope, { inside }: Walk, nodeId: string, status: NodeRunRow["status"]): NodeRunRow {
  run.nodeRuns += 1;
  const place = { parent_id: inside?.container.row.id ?? null, iteration: inside?.iteration ?? 0 };
  const nothing = { output: null, error: null, usage: null, handle: null, wake_at: null };
  return { id: run.deps.newId(), node_id: nodeId, ...place, attempt: 1, status, ...nothing };
}

function errorOf(run: RunScope, { node }: ActiveNode, cause: unknown): RunError {
  if (cause instanceof NodeError || cause instanceof EvaluationError)
    return { code: cause.code, message: cause.message, node_id: node.id };
  run.report(cause, node.id);
  return { code: "internal_error", message: "The node failed", node_id: node.id };
}
