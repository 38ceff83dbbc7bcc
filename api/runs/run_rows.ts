/** Rows of runs as the engine and the run surface read them. */
import type { RunError, RunUsage } from "#contracts/run_event.ts";

/** What the engine needs to execute a run. */
export interface ExecutableRun {
  id: string;
  created_at: Date;
  organization_id: string;
  project_id: string;
  app_id: string;
  workflow_version_id: string;
  trace_id: string;
  input: Record<string, unknown>;
  metadata: Record<string, unknown>;
  session_id: string | null;
  user_id: string | null;
  timeout_s: number;
  active_ms: number;
  attempt: number;
  epoch: number;
  /** Workers that died over it since a node of it last finished. */
  recoveries: number;
  last_event_id: number;
}

/** State of a run after a step, as it is written with the events that tell of it. */
export type RunOutcome =
  | { status: "succeeded"; output: Record<string, unknown>; usage: RunUsage }
  | { status: "failed"; error: RunError; usage: RunUsage }
  | { status: "canceled"; usage: RunUsage }
  /** Parked: nothing works, and the lease is given up. */
  | { status: "awaiting_input" | "pending"; usage: RunUsage; wakeAt: Date | undefined };

export interface NodeRunRow {
  id: string;
  node_id: string;
  /** The node run that it is inside of; null in the run's own graph. */
  parent_id: string | null;
  /** Which walk inside of that one: the item of a map. */
  iteration: number;
  attempt: number;
  status: "running" | "waiting" | "succeeded" | "skipped" | "failed";
  output: unknown;
  error: RunError | null;
  usage: RunUsage | null;
  handle: string | null;
  wake_at: Date | null;
}
