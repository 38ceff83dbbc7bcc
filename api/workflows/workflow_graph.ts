/**
 * The graph of a workflow's definition: its nodes with the edges that enter and leave them, and
 * who comes before whom.
 */
import { defaultHandle, type WorkflowDefinition, type WorkflowEdge, type WorkflowNode } from "#contracts/workflow.ts";

export interface GraphNode {
  node: WorkflowNode;
  incoming: readonly WorkflowEdge[];
  outgoing: readonly WorkflowEdge[];
}

/** The nodes and edges of a definition, or of what is inside of a node. */
export type SubGraph = Pick<WorkflowDefinition, "nodes" | "edges">;

/** Nodes in the order in which the definition lists them. */
export type Graph = ReadonlyMap<string, GraphNode>;

export function graphOf({ nodes, edges }: SubGraph): Graph {
  return new Map(
    nodes.map((node) => [
      node.id,
      {
        node,
        incoming: edges.filter((edge) => edge.to === node.id),
        outgoing: edges.filter((edge) => edge.from === node.id),
      },
    ]),
  );
}

export function handleOf(edge: WorkflowEdge): string {
  return edge.handle ?? defaultHandle;
}

/**
 * Every node's ancestors. Kahn's algorithm: a node that is on a cycle, or behind one, is missing
 * from the result.
 */
export function ancestorsIn(graph: Graph): ReadonlyMap<string, ReadonlySet<string>> {
  const ancestors = new Map<string, Set<string>>();
  const waiting = new Map([...graph].map(([id, { incoming }]) => [id, incoming.length]));
  const ready = [...waiting].filter(([, count]) => count === 0).map(([id]) => id);
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    const own = new Set<string>();
    for (const { from } of graph.get(id)?.incoming ?? []) {
      own.add(from);
      for (const ancestor of ancestors.get(from) ?? []) own.add(ancestor);
    }
    ancestors.set(id, own);
    for (const { to } of graph.get(id)?.outgoing ?? []) {
      const left = (waiting.get(to) ?? 0) - 1;
      waiting.set(to, left);
      if (left === 0) ready.push(to);
    }
  }
  return ancestors;
}
