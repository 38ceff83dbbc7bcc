/** Walks inside of a node: an item of a map each, or a subworkflow's one. */
import type { RunError } from "#contracts/run_event.ts";
import { defaultHandle } from "#contracts/workflow.ts";
import { type Nesting, NodeError, type WalkOutcome } from "#workflows/nodes/node_kind.ts";
import type { NodeRunRow } from "../run_rows.ts";
import { restoreWalk } from "./checkpoint.ts";
import { abandonNode, failNode, finishNode } from "./node_steps.ts";
import type { RunScope } from "./run_scope.ts";
import { type ActiveNode, type NestedWalks, newWalk, originOf, type Walk } from "./walk.ts";

/**
 * Opens what a node has inside of it.
 * @param before rows of an earlier claim, by iteration: those walks go on from there
 * @returns nodes of them that had not finished
 */
export function openNested(
  run: RunScope,
  container: ActiveNode,
  { nesting, startedMs }: { nesting: Nesting; startedMs: number },
  before: readonly [iteration: number, rows: NodeRunRow[]][],
): ActiveNode[] {
  const outcomes = Array.from({ length: nesting.iterations }, () => null);
  const nested: NestedWalks = { nesting, startedMs, outcomes, ended: 0, next: 0, open: new Map() };
  container.nested = nested;
  container.waitsFor = "nested";
  const unfinished = before.flatMap(([iteration, rows]) =>
    restoreWalk(run, openWalk(container, nested, iteration), rows),
  );
  boundTime(run, container);
  openNext(run, container, nested);
  return unfinished;
}

/** A walk inside of a node came to its end. */
export function endNested(run: RunScope, walk: Walk, outcome: WalkOutcome): void {
  if (!walk.inside?.container.nested) return;
  const { container, iteration } = walk.inside;
  const { nested } = walk.inside.container;
  abandonWalk(run, walk, "Another node of the same walk failed");
  nested.open.delete(iteration);
  nested.outcomes[iteration] = outcome;
  nested.ended += 1;
  const { nesting, ended } = nested;
  if (nesting.counts) {
    const data = { current: ended, total: nesting.iterations };
    run.append({ type: "node.progress", ...originOf(container.row, container.walk), data });
  }
  if ("error" in outcome && !nesting.toleratesErrors) {
    abandonNested(run, container, "Another item failed");
    failNode(run, container, nesting.errorOf(iteration, outcome.error));
    return;
  }
  openNext(run, container, nested);
}

/** Ends everything inside of a node that goes no further. */
export function abandonNested(run: RunScope, { nested }: ActiveNode, message: string): void {
  for (const walk of nested?.open.values() ?? []) abandonWalk(run, walk, message);
  nested?.open.clear();
}

function abandonWalk(run: RunScope, walk: Walk, message: string): void {
  const error: RunError = { code: "abandoned", message };
  walk.abort.abort();
  for (const active of run.active.values()) {
    if (active.walk !== walk) continue;
    abandonNested(run, active, message);
    abandonNode(run, active, error);
  }
  run.changed.delete(walk);
}

/** As many at once as may be, in their order; the last one to end ends the node. */
function openNext(run: RunScope, container: ActiveNode, nested: NestedWalks): void {
  const { nesting, open, outcomes } = nested;
  while (nested.next < nesting.iterations && open.size < nesting.concurrency) {
    run.changed.add(openWalk(container, nested, nested.next));
  }
  if (nested.ended < nesting.iterations) return;
  const output = nesting.outputOf(outcomes.filter((outcome) => outcome !== null));
  finishNode(run, container, { is: "done", output, handle: defaultHandle }, nested.startedMs);
}

function openWalk(container: ActiveNode, nested: NestedWalks, iteration: number): Walk {
  const { graph, contextOf } = nested.nesting;
  const walk = newWalk(graph, contextOf(iteration), { container, iteration });
  nested.open.set(iteration, walk);
  nested.next = Math.max(nested.next, iteration + 1);
  return walk;
}

/** The node's time-out bounds the whole of it, counted from the moment that this worker opened it. */
function boundTime(run: RunScope, container: ActiveNode): void {
  const { timeout_s } = container.node;
  if (timeout_s === undefined) return;
  const error = new NodeError("node_timeout", `The node took longer than ${timeout_s} s`);
  run.timers.after(timeout_s * 1000, () => run.find({ of: container, error }));
}
