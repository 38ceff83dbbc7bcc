/** Executes one node once: its inputs, its time-out, and the bounds of what it says. */
import { type RunError, runLimits } from "#contracts/run_event.ts";
import type { WorkflowNode } from "#contracts/workflow.ts";
import { resolveValue } from "../references.ts";
import { isNodeKind } from "../workflow_rules.ts";
import {
  type ExecuteNode,
  type NodeContext,
  NodeError,
  type NodeEvent,
  type NodeResult,
  type RunContext,
} from "./node_kind.ts";
import { executors } from "./node_kinds.ts";

const reachesOut: ReadonlySet<string> = new Set(["http", "tool", "llm"]);

export interface NodeRunOptions extends Omit<NodeContext, "config" | "signal" | "emit"> {
  /** Ends when the run does. */
  signal: AbortSignal;
  emit(event: NodeEvent): void;
  /** Settles when the node's own row is durable. */
  recorded(): Promise<void>;
}

/** @throws NodeError, or whatever else the node's kind did not foresee */
export async function runNode(node: WorkflowNode, options: NodeRunOptions): Promise<NodeResult> {
  const { emit, recorded, signal: runSignal, ...seen } = options;
  if (!isNodeKind(node.type)) throw new NodeError("unknown_node", `There is no node kind ${node.type}`);
  const timeout = node.timeout_s === undefined ? undefined : AbortSignal.timeout(node.timeout_s * 1000);
  const signal = timeout ? AbortSignal.any([runSignal, timeout]) : runSignal;
  const execute = executors[node.type] as ExecuteNode<typeof node.type>;
  const work = async () => {
    // What reaches out is named by its node run: the name must outlive a crash before anybody hears it.
    if (reachesOut.has(node.type)) await recorded();
    signal.throwIfAborted();
    return execute({
      ...seen,
      config: (node.config ?? {}) as never,
      emit(event) {
        if (signal.aborted) return;
        const tooLarge = sizeProblem(event.data, "event_too_large", "an event");
        if (tooLarge) throw new NodeError(tooLarge.code, tooLarge.message);
        emit(event);
      },
      signal,
    });
  };
  try {
    return await Promise.race([work(), abortOf(signal)]);
  } catch (cause) {
    if (!timeout?.aborted) throw cause;
    throw new NodeError("node_timeout", `The node took longer than ${node.timeout_s} s`, { cause, retryable: true });
  }
}

export function resolveInputs(node: WorkflowNode, context: RunContext): Record<string, unknown> {
  const entries = Object.entries(node.inputs ?? {}).map(([name, value]) => [
    name,
    resolveValue(value, context) ?? null,
  ]);
  return Object.fromEntries(entries);
}

/** Outputs and events are kept and sent as a whole: both are bounded. */
export function sizeProblem(value: unknown, code: string, what: string): RunError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes <= runLimits.eventBytesMax) return undefined;
  return { code, message: `Expected at most ${runLimits.eventBytesMax} bytes in ${what}, got ${bytes}` };
}

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
