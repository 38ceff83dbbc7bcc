/** Nodes of a definition with those inside of its maps. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import {
  type NodeConfig,
  nodeConfigs,
  type WorkflowDefinition,
  type WorkflowNode,
  workflowLimits,
} from "#contracts/workflow.ts";

const mapConfig = TypeCompiler.Compile(nodeConfigs.map);

type SubGraph = Pick<WorkflowDefinition, "nodes" | "edges">;

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

/** The graph inside of a map; undefined for every other node. */
export function bodyOf({ type, config }: WorkflowNode): NodeConfig<"map">["body"] | undefined {
  return type === "map" && mapConfig.Check(config ?? {}) ? (config as NodeConfig<"map">).body : undefined;
}
