/**
 * What a run does next, as a pure function of its graph and of the state of its nodes. An edge is
 * live when its node left by its handle, dead when it cannot be taken any more. A node starts when
 * all its edges are settled and one is live (`join: all`, the default: skipped branches count as
 * done), or as soon as one is live (`join: any`); it is skipped when all are dead.
 */

import { errorHandle } from "#contracts/workflow.ts";
import { type Graph, handleOf } from "#workflows/workflow_graph.ts";

export type NodeState =
  /** Being executed, or to be executed again after a crash. */
  | { is: "running" }
  /** Parked: an answer, a moment or the next attempt is awaited. */
  | { is: "waiting" }
  | { is: "succeeded"; handle: string }
  | { is: "skipped" }
  | { is: "failed" };

/** A node without an entry has not begun. */
export type NodeStates = ReadonlyMap<string, NodeState>;

export interface Steps {
  /** Nodes to start now, in the definition's order. */
  start: string[];
  /** Nodes that will never start, in the order in which that became clear. */
  skip: string[];
  /** Nothing is under way, nothing waits, nothing is left to start. */
  done: boolean;
  /** A node failed and no edge takes its error: the run fails, whatever else goes on. */
  failedNode: string | undefined;
}

export function nextSteps(graph: Graph, known: NodeStates): Steps {
  const states = new Map(known);
  const skip: string[] = [];
  let start: string[] = [];
  // A skipped node settles the edges behind it, which may skip or start further nodes.
  for (let grown = true; grown; ) {
    grown = false;
    start = [];
    for (const [id] of graph) {
      if (states.has(id)) continue;
      const fate = fateOf(id, graph, states);
      if (fate === "start") start.push(id);
      if (fate === "skip") {
        states.set(id, { is: "skipped" });
        skip.push(id);
        grown = true;
      }
    }
  }
  const active = [...states.values()].some(({ is }) => is === "running" || is === "waiting");
  const failedNode = [...states].find(([id, { is }]) => is === "failed" && !handlesError(id, graph))?.[0];
  return { start, skip, done: !active && start.length === 0, failedNode };
}

/** Whether an edge takes the node's error, so that the run goes on when it fails. */
export function handlesError(id: string, graph: Graph): boolean {
  return (graph.get(id)?.outgoing ?? []).some((edge) => handleOf(edge) === errorHandle);
}

function fateOf(id: string, graph: Graph, states: NodeStates): "start" | "skip" | "wait" {
  const { node, incoming } = graph.get(id) ?? { node: undefined, incoming: [] };
  if (incoming.length === 0) return "start";
  const fates = incoming.map((edge) => edgeFate(states.get(edge.from), handleOf(edge)));
  const live = fates.includes("live");
  const settled = !fates.includes("open");
  if (live && (settled || node?.join === "any")) return "start";
  return settled ? "skip" : "wait";
}

function edgeFate(from: NodeState | undefined, handle: string): "open" | "live" | "dead" {
  switch (from?.is) {
    case "succeeded":
      return from.handle === handle ? "live" : "dead";
    case "failed":
      return handle === errorHandle ? "live" : "dead";
    case "skipped":
      return "dead";
    default:
      return "open";
  }
}
