/** Executes one node once: its inputs, its time-out, and the bounds of what it says. */

import type { RunErrorCode } from "#contracts/codes.ts";
import { type RunError, runLimits } from "#contracts/run_event.ts";
import type { WorkflowNode } from "#contracts/workflow.ts";
import type { Budget } from "#workflows/evaluation_budget.ts";
import { kindOf } from "#workflows/nodes/catalogue.ts";
import {
  type NodeContext,
  NodeError,
  type NodeEvent,
  type NodeResult,
  type RunContext,
} from "#workflows/nodes/node_kind.ts";
import { resolveValue } from "#workflows/references.ts";

export interface NodeRunOptions extends Omit<NodeContext, "config" | "signal" | "emit"> {
  /** Ends when the node's walk does. */
  signal: AbortSignal;
  /** @returns settles when more may be said; undefined when at once */
  emit(event: NodeEvent): Promise<void> | undefined;
  /** Settles when the node's own row is durable. */
  recorded(): Promise<void>;
}

/** @throws NodeError, or whatever else the node's kind did not foresee */
export async function runNode(node: WorkflowNode, options: NodeRunOptions): Promise<NodeResult> {
  const { emit, recorded, signal: runSignal, ...seen } = options;
  const kind = kindOf(node);
  if (!kind) throw new NodeError("unknown_node", `There is no node kind ${node.type}`);
  const timeout = node.timeout_s === undefined ? undefined : AbortSignal.timeout(node.timeout_s * 1000);
  const signal = timeout ? AbortSignal.any([runSignal, timeout]) : runSignal;
  const work = async () => {
    // What reaches out is named by its node run: the name must outlive a crash before anybody hears it.
    if (kind.reachesOut) await recorded();
    signal.throwIfAborted();
    return kind.execute({
      ...seen,
      config: node.config ?? {},
      async emit(event) {
        signal.throwIfAborted();
        const tooLarge = sizeProblem(event.data, "event_too_large", "an event");
        if (tooLarge) throw new NodeError(tooLarge.code, tooLarge.message);
        await emit(event);
        signal.throwIfAborted();
      },
      signal,
    });
  };
  const aborted = abortOf(signal);
  try {
    return await Promise.race([work(), aborted.rejected]);
  } catch (cause) {
    if (!timeout?.aborted) throw cause;
    throw new NodeError("node_timeout", `The node took longer than ${node.timeout_s} s`, { cause, retryable: true });
  } finally {
    aborted.forget();
  }
}

export function resolveInputs(node: WorkflowNode, context: RunContext, budget: Budget): Record<string, unknown> {
  const entries = Object.entries(node.inputs ?? {}).map(([name, value]) => [
    name,
    resolveValue(value, context, budget) ?? null,
  ]);
  return Object.fromEntries(entries);
}

/** Outputs and events are kept and sent as a whole: both are bounded. */
export function sizeProblem(value: unknown, code: RunErrorCode, what: string): RunError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes <= runLimits.eventBytesMax) return undefined;
  return { code, message: `Expected at most ${runLimits.eventBytesMax} bytes in ${what}, got ${bytes}` };
}

/** A run's signal outlives its nodes, thousands of them perhaps: each takes its listener away again. */
function abortOf(signal: AbortSignal): { rejected: Promise<never>; forget(): void } {
  let onAbort: () => void = () => undefined;
  const rejected = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return { rejected, forget: () => signal.removeEventListener("abort", onAbort) };
}
