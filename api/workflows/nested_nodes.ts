/** Nodes of a definition with those inside of its maps. */
import { type WorkflowNode, workflowLimits } from "#contracts/workflow.ts";
import { fittingConfig, kindOf } from "./nodes/catalogue.ts";
import type { SubGraph } from "./workflow_graph.ts";

export interface PlacedNode {
  node: WorkflowNode;
  /** `nodes.2`, or `nodes.2.config.body.nodes.0` in a map. */
  path: string;
  /** Maps that it is inside of. */
  depth: number;
}

/** All of them, each map followed by what is in it, down to the first one that is too deep. What is no map's config by its form is no map. */
export function* nodesIn(graph: SubGraph, path = "", depth = 0): Generator<PlacedNode> {
  for (const [index, node] of graph.nodes.entries()) {
    const own = `${path}nodes.${index}`;
    yield { node, path: own, depth };
    const body = depth <= workflowLimits.depthMax ? bodyOf(node) : undefined;
    if (body) yield* nodesIn(body, `${own}.config.body.`, depth + 1);
  }
}

/** The graph inside of a node; undefined where its kind has none, or its config does not fit. */
export function bodyOf(node: WorkflowNode): SubGraph | undefined {
  const config = fittingConfig(node);
  return config && kindOf(node)?.body?.(config);
}
