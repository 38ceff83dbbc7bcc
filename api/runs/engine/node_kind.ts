/**
 * What a node kind is: a function from a node and what it sees to what came of it. A kind keeps no
 * state of its own. A node that waits (for an answer, for a moment) says so and is executed again,
 * from its beginning, when the wait is over; then `answer` or `woken` tells.
 */

import type { RunErrorCode } from "#contracts/codes.ts";
import type { InputRequest, NewRunEvent, RunError, RunUsage } from "#contracts/run_event.ts";
import type { NodeConfig, NodeKind, SchemaNode, WorkflowDefinition } from "#contracts/workflow.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import type { Budget } from "#workflows/evaluation_budget.ts";
import type { Graph } from "#workflows/workflow_graph.ts";

/** Facts of the run that references and templates can name. */
export interface RunFacts {
  id: string;
  session_id?: string;
  user_id?: string;
  metadata: Record<string, unknown>;
}

/** What references resolve in: `$.input`, `$.nodes.<id>.output`, `$.run`; inside of a map `$.item` and `$.index` too. */
export interface RunContext {
  input: Record<string, unknown>;
  nodes: Record<string, { output: unknown }>;
  run: RunFacts;
  item?: unknown;
  index?: number;
}

/** How an input request was resolved. */
export interface InputAnswer {
  decision: "approve" | "reject" | "respond" | "expired";
  /** The proposed params with the changed ones over them. */
  params: Record<string, unknown>;
  feedback?: unknown;
  comment?: string;
  responded_by?: string;
}

/** A request as a node asks for it; ids and times are the executor's. */
export interface InputQuestion
  extends Pick<InputRequest, "type" | "prompt" | "params" | "editable_params" | "audience"> {
  params_schema?: SchemaNode;
  response_schema?: SchemaNode;
  timeout_s?: number;
}

type EmittedType = "node.progress" | "content.delta" | "content.completed" | "tool.called" | "tool.completed";
/** An event that a node adds to the run; the executor fills in whose it is. */
export type NodeEvent = Pick<Extract<NewRunEvent, { type: EmittedType }>, "type" | "data">;

/** What a node may reach in the world. */
export interface NodeDeps {
  http: GuardedHttp;
  /** A model for an llm node: built in, or a vendor's through the connection. @throws NodeError */
  openModel(config: NodeConfig<"llm">): Promise<LanguageModel>;
  /** Calls an MCP server's tool. @throws NodeError */
  callMcpTool(
    tool: NonNullable<NodeConfig<"tool">["mcp"]>,
    toolArguments: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<unknown>;
  /** The definition of a version of the run's own project. */
  definitionOf(versionId: string): Promise<WorkflowDefinition | undefined>;
  now(): Date;
}

export interface NodeContext<K extends NodeKind = NodeKind> {
  config: NodeConfig<K>;
  /** The node's `inputs`, resolved. */
  inputs: Record<string, unknown>;
  context: RunContext;
  /** What evaluating the node's expressions may cost. */
  budget: Budget;
  /** Stable over retries and crashes: the key by which others recognize a repeated call. */
  nodeRunId: string;
  /** Whether deltas of this node are part of the stream. */
  streams: boolean;
  answer: InputAnswer | undefined;
  /** The moment that the node waited for has come. */
  woken: boolean;
  /** A node that says much awaits each: it is held up while the log is behind. @throws where the node is to end */
  emit(event: NodeEvent): Promise<void>;
  deps: NodeDeps;
  signal: AbortSignal;
}

export type NodeResult =
  | { is: "done"; output: unknown; handle: string; usage?: RunUsage }
  | { is: "asking"; question: InputQuestion }
  | { is: "sleeping"; until: Date }
  | { is: "nesting"; nesting: Nesting };

/** What goes on inside of a node: walks through one graph. Asked for again, a node answers the same. */
export interface Nesting {
  graph: Graph;
  iterations: number;
  /** Walks at once. */
  concurrency: number;
  /** Its walks are counted: they say which one they are, and the node how far it is. */
  counts: boolean;
  contextOf(iteration: number): RunContext;
  /** A walk that failed is an outcome like any other; otherwise the first one fails the node. */
  toleratesErrors: boolean;
  outputOf(outcomes: readonly WalkOutcome[]): unknown;
  /** The node's own error, of the one of its walk. */
  errorOf(iteration: number, error: RunError): RunError;
}

export type WalkOutcome = { output: Record<string, unknown> } | { error: RunError };

export type ExecuteNode<K extends NodeKind> = (node: NodeContext<K>) => Promise<NodeResult> | NodeResult;

/** The node failed for a reason that its author should see. Anything else that is thrown is `internal_error`. */
export class NodeError extends Error {
  readonly code: RunErrorCode;
  /** Trying again may help. */
  readonly retryable: boolean;
  constructor(code: RunErrorCode, message: string, options: ErrorOptions & { retryable?: boolean } = {}) {
    super(message, options);
    this.name = "NodeError";
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}
