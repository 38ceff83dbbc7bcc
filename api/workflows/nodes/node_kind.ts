/**
 * What a node kind is: its config, its rules, its words, and a function from a node and what it sees to
 * what came of it. A kind is a folder that exports `defineNode({…})`, and a line in `catalogue.ts`. It
 * keeps no state of its own. A node that waits (for an answer, for a moment) says so and is executed
 * again, from its beginning, when the wait is over; then `answer` or `woken` tells.
 */

import type { Static, TSchema } from "@sinclair/typebox";
import type { RunErrorCode } from "#contracts/codes.ts";
import type { InputRequest, NewRunEvent, RunError, RunUsage } from "#contracts/run_event.ts";
import type { McpTool, SchemaNode, WorkflowDefinition, WorkflowNode } from "#contracts/workflow.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import type { Budget } from "../evaluation_budget.ts";
import type { Graph, SubGraph } from "../workflow_graph.ts";

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

type EmittedType =
  | "node.progress"
  | "content.delta"
  | "content.completed"
  | "model.completed"
  | "tool.called"
  | "tool.completed";
/** An event that a node adds to the run; the executor fills in whose it is. */
export type NodeEvent = { [T in EmittedType]: Pick<Extract<NewRunEvent, { type: T }>, "type" | "data"> }[EmittedType];

/** The model that an llm node asks for. */
export interface AskedModel {
  connection_id?: string;
  model: string;
  options?: Record<string, unknown>;
  temperature?: number;
  max_tokens?: number;
}

/** A model, whose it is, and what it costs. */
export interface OpenedModel {
  provider: string;
  model: LanguageModel;
  /** In `currency`; null where no price is known. */
  costOf(usage: RunUsage): number | null;
  currency: string;
}

/** What a node may reach in the world. */
export interface NodeDeps {
  http: GuardedHttp;
  /** A model for an llm node: built in, or a vendor's through the connection. @throws NodeError */
  openModel(asked: AskedModel): Promise<OpenedModel>;
  /** Calls an MCP server's tool. @throws NodeError */
  callMcpTool(tool: McpTool, toolArguments: Record<string, unknown>, signal: AbortSignal): Promise<unknown>;
  /** The definition of a version of the run's own project. */
  definitionOf(versionId: string): Promise<WorkflowDefinition | undefined>;
  now(): Date;
}

export interface NodeContext<Config = unknown> {
  config: Config;
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
  | { is: "done"; output: unknown; handle: string }
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

export type ExecuteNode<Config> = (node: NodeContext<Config>) => Promise<NodeResult> | NodeResult;

/** Where a rule says what is wrong. */
export interface NodeReport {
  node: WorkflowNode;
  /** Of the config: `nodes.2.config`. */
  path: string;
  report(path: string, message: string): void;
}

/** A kind as its folder exports it. `config` of `handles` and `references` may not fit its schema yet: that is reported elsewhere. */
interface NodeDefinition<Schema extends TSchema> {
  kind: string;
  /** For people: its name, and its icon as a path of strokes in a square of 24 by 24. */
  words: { name: string; icon: string };
  config: Schema;
  /** What the schema cannot say. */
  check?(config: Static<Schema>, at: NodeReport): void;
  /** Handles that a node can leave by, `error` apart; the default one unless given. */
  handles?(config: Static<Schema>): readonly string[];
  /** The part of a config that holds references. */
  references?(config: Partial<Static<Schema>>): unknown;
  /** Other nodes are inside of it: it has no `retry`, they do. */
  isContainer?: true;
  /** The graph inside of it, where the definition holds it. */
  body?(config: Static<Schema>): SubGraph;
  /** It reaches out under the name of its node run, which must be durable before anybody hears it. */
  reachesOut?: true;
  execute: ExecuteNode<Static<Schema>>;
}

/** A kind of any config, as the catalogue holds it. */
export type NodeKind = NodeDefinition<TSchema>;

/** Sees to it that rules and execution take the config that the schema allows. */
export function defineNode<Schema extends TSchema>(definition: NodeDefinition<Schema>): NodeKind {
  return definition as unknown as NodeKind;
}

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
