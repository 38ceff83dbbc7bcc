/**
 * A walk through a graph: the run's own, or one inside of a node (an item of a map, a subworkflow).
 * A node that has begun and has not finished is active; of one that has, only its state and what
 * others may refer to are kept.
 */
import { setMaxListeners } from "node:events";
import type { NewRunEvent } from "#contracts/run_event.ts";
import type { WorkflowNode } from "#contracts/workflow.ts";
import type { InputAnswer, Nesting, RunContext, WalkOutcome } from "#workflows/nodes/node_kind.ts";
import type { Graph } from "#workflows/workflow_graph.ts";
import type { NodeRunRow } from "../run_rows.ts";
import type { NodeState } from "./stepper.ts";

export interface Walk {
  graph: Graph;
  context: RunContext;
  /** By node id; a node without one has not begun. */
  states: Map<string, NodeState>;
  /** The node that it is inside of, and which of that node's walks it is; undefined for the run's own. */
  inside: { container: ActiveNode; iteration: number } | undefined;
  abort: AbortController;
}

export interface ActiveNode {
  walk: Walk;
  node: WorkflowNode;
  row: NodeRunRow;
  /** Why it does not work at the moment; undefined while it does. */
  waitsFor: "input" | "moment" | "nested" | undefined;
  /** What it was told: one that is tried again asks no second time. */
  answer: InputAnswer | undefined;
  /** Its request that nobody has answered. */
  askedId: string | undefined;
  /** What goes on inside of it. */
  nested: NestedWalks | undefined;
}

export interface NestedWalks {
  nesting: Nesting;
  startedMs: number;
  /** By iteration; null until its walk has ended. */
  outcomes: (WalkOutcome | null)[];
  ended: number;
  /** The lowest iteration that has not been opened. */
  next: number;
  open: Map<number, Walk>;
}

export function newWalk(graph: Graph, context: RunContext, inside?: Walk["inside"]): Walk {
  const abort = new AbortController();
  // All nodes that work side by side listen, and what they call.
  setMaxListeners(0, abort.signal);
  return { graph, context, states: new Map(), inside, abort };
}

export function newActive(walk: Walk, row: NodeRunRow): ActiveNode {
  const node = walk.graph.get(row.node_id)?.node;
  if (!node) throw new Error(`A node run is of a node ${row.node_id} that its version does not have`);
  return { walk, node, row, waitsFor: undefined, answer: undefined, askedId: undefined, nested: undefined };
}

/** Whose an event is. */
export function originOf(
  { id, node_id, attempt }: NodeRunRow,
  { inside }: Walk,
): Pick<NewRunEvent, "node_id" | "node_run_id" | "parent_node_run_id" | "iteration" | "attempt"> {
  return {
    node_id,
    node_run_id: id,
    ...(inside && { parent_node_run_id: inside.container.row.id }),
    ...(inside?.container.nested?.nesting.counts && { iteration: inside.iteration }),
    ...(attempt > 1 && { attempt }),
  };
}

/** What the output nodes that were reached say together. */
export function outputOf({ graph, states, context }: Walk): Record<string, unknown> {
  const outputs = [...graph.values()]
    .filter(({ node }) => node.type === "output" && states.get(node.id)?.is === "succeeded")
    .map(({ node }) => context.nodes[node.id]?.output);
  return Object.assign({}, ...outputs);
}

/** The node of the run's own graph that the walk is inside of, or `nodeId` itself in the run's own. */
export function outermostNode({ inside }: Walk, nodeId: string): string {
  return inside ? outermostNode(inside.container.walk, inside.container.node.id) : nodeId;
}
