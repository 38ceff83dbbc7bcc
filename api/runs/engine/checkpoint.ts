/** A run as an earlier claim left it: rows of nodes, put back where they were. */
import { defaultHandle } from "#contracts/workflow.ts";
import type { NodeRunRow } from "../run_rows.ts";
import type { RunScope } from "./run_scope.ts";
import { type ActiveNode, newActive, type Walk } from "./walk.ts";

export interface Checkpoint {
  /** Something worked when the claim ended: its worker died. */
  wasInterrupted: boolean;
  /** Nothing worked, something waited: it was parked. */
  wasParked: boolean;
  /** Rows inside of a node by iteration, the lowest first; null for the run's own, whose only iteration is 0. */
  inside(nodeRunId: string | null): [iteration: number, rows: NodeRunRow[]][];
}

export function checkpointOf(rows: readonly NodeRunRow[]): Checkpoint {
  const byParent = new Map<string | null, Map<number, NodeRunRow[]>>();
  for (const row of rows) {
    const iterations = byParent.get(row.parent_id) ?? new Map<number, NodeRunRow[]>();
    byParent.set(row.parent_id, iterations);
    iterations.set(row.iteration, [...(iterations.get(row.iteration) ?? []), row]);
  }
  // A node with others inside of it does nothing itself.
  const wasInterrupted = rows.some(({ id, status }) => status === "running" && !byParent.has(id));
  return {
    wasInterrupted,
    wasParked: !wasInterrupted && rows.some(({ status }) => status === "waiting"),
    inside: (nodeRunId) => [...(byParent.get(nodeRunId) ?? [])].sort(([a], [b]) => a - b),
  };
}

/** @returns what had begun and not finished; it is active again, but does not go on yet */
export function restoreWalk(run: RunScope, walk: Walk, rows: readonly NodeRunRow[]): ActiveNode[] {
  const unfinished: ActiveNode[] = [];
  for (const row of rows) {
    const { node_id, status } = row;
    if (status === "succeeded") {
      walk.context.nodes[node_id] = { output: row.output };
      walk.states.set(node_id, { is: status, handle: row.handle ?? defaultHandle });
    } else if (status === "skipped" || status === "failed") {
      if (status === "failed") walk.context.nodes[node_id] = { output: { error: row.error } };
      walk.states.set(node_id, { is: status });
    } else {
      const active = newActive(walk, row);
      if (status === "waiting") active.waitsFor = row.wake_at ? "moment" : "input";
      walk.states.set(node_id, { is: status });
      run.active.set(row.id, active);
      unfinished.push(active);
    }
  }
  run.changed.add(walk);
  return unfinished;
}
