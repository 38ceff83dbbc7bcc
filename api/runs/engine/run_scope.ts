/** What the parts of one executing run share: what is active, where it is noted, and what it may reach. */
import { type NewRunEvent, type RunUsage, runLimits } from "#contracts/run_event.ts";
import type { Budget } from "#workflows/evaluation_budget.ts";
import type { NodeDeps, NodeResult } from "#workflows/nodes/node_kind.ts";
import type { InputRequestRow } from "./input_answers.ts";
import type { RunWriter } from "./recorder.ts";
import type { ClaimedRun } from "./run_claim.ts";
import type { RunTimers } from "./run_timers.ts";
import type { ActiveNode, Walk } from "./walk.ts";

export interface ExecutorDeps {
  nodeDeps(claimed: ClaimedRun): NodeDeps;
  /** Requests of nodes that have not finished. */
  inputRequests(runId: string): Promise<InputRequestRow[]>;
  now(): Date;
  newId(): string;
  workerId: string;
  onInternalError(error: unknown, at: { run_id: string; node_id?: string }): void;
}

/** What happened to a node while the run listened. */
export type Finding = { of: ActiveNode; result: NodeResult; startedMs: number } | { of: ActiveNode; error: unknown };

export interface RunScope {
  claimed: ClaimedRun;
  writer: RunWriter;
  deps: ExecutorDeps;
  nodeDeps: NodeDeps;
  /** What evaluating the run's expressions may cost, all nodes together. */
  budget: Budget;
  timers: RunTimers;
  /** By node run id. */
  active: Map<string, ActiveNode>;
  /** Walks in which something has finished since they were last looked at. */
  changed: Set<Walk>;
  usage: RunUsage;
  /** Node runs so far: a map in a map of a subworkflow is a lot quickly. */
  nodeRuns: number;
  /** Adds to the log; nothing, once the run is left. */
  append(event: NewRunEvent): void;
  find(finding: Finding): void;
  report(error: unknown, nodeId?: string): void;
}

export function hasTooManyNodes({ nodeRuns }: RunScope): boolean {
  return nodeRuns > runLimits.nodeRunsMax;
}
