/**
 * What a workflow's definition must fulfil beyond its schema, checked when it is saved. Pure;
 * every problem is named by its path (`nodes.2.config.model`, `edges.0.to`), all at once.
 */
import type { ErrorDetails } from "#contracts/errors.ts";
import {
  defaultHandle,
  errorHandle,
  type WorkflowDefinition,
  type WorkflowNode,
  workflowLimits,
} from "#contracts/workflow.ts";
import { bodyOf, nodesIn, type PlacedNode } from "./nested_nodes.ts";
import { configProblems, fittingConfig, kindOf, laterNodeKinds, nodeKinds } from "./nodes/catalogue.ts";
import { isPlainReference, referencedNode, referencedRoot, referenceProblem, referencesIn } from "./references.ts";
import { ancestorsIn, graphOf, handleOf, type SubGraph } from "./workflow_graph.ts";

type Report = (path: string, message: string) => void;

/** Each is parsed, which takes up to 20 microseconds a character. */
const searchingCharsMax = 20_000;

/** Where a graph stands: the run's own, or the body of a map. */
interface Place {
  /** What its paths begin with: nothing, or `nodes.2.config.body.`. */
  path: string;
  /** Maps around it. */
  depth: number;
  /** Nodes of the graphs around it that have finished before it begins. */
  before: ReadonlySet<string>;
}

/**
 * Problems by path; empty when the definition can run. What it says of other workflows is checked
 * by `subworkflow_rules.ts`.
 */
export function workflowProblems(definition: WorkflowDefinition): ErrorDetails {
  const problems: Record<string, string> = {};
  const report: Report = (path, message) => {
    problems[path] ??= message;
  };
  const known = [...nodesIn(definition)];
  if (known.length > workflowLimits.nodesMax) {
    report("nodes", `Expected at most ${workflowLimits.nodesMax} nodes, those inside of maps counted`);
  }
  const searching = known.flatMap(({ node }) => referencesOf(node)).filter((path) => !isPlainReference(path));
  if (searching.reduce((chars, path) => chars + path.length, 0) > searchingCharsMax) {
    report(
      "nodes",
      `Expected at most ${searchingCharsMax} characters of references that are not names and places alone`,
    );
    return problems;
  }
  checkIds(known, report);
  checkGraph(definition, { path: "", depth: 0, before: new Set() }, report);
  return problems;
}

function checkGraph(graph: SubGraph, place: Place, report: Report): void {
  checkEnds(graph, place, report);
  for (const [index, node] of graph.nodes.entries()) checkNode(node, `${place.path}nodes.${index}`, report);
  checkEdges(graph, place, report);
  checkOrder(graph, place, report);
}

/** Handles that a node can leave by, `error` apart; undefined where its config does not tell. */
function handlesOf(node: WorkflowNode): readonly string[] | undefined {
  const kind = kindOf(node);
  if (!kind?.handles) return [defaultHandle];
  const config = fittingConfig(node);
  return config && kind.handles(config);
}

/** A body's nodes see those around it: an id means one node in all of the definition. */
function checkIds(known: readonly PlacedNode[], report: Report): void {
  const seen = new Set<string>();
  for (const { node, path } of known) {
    if (seen.has(node.id)) report(`${path}.id`, `Expected a unique id: ${node.id} is taken`);
    seen.add(node.id);
  }
}

function checkEnds({ nodes }: SubGraph, { path, depth }: Place, report: Report): void {
  const inputs = nodes.filter(({ type }) => type === "input");
  if (depth === 0 && inputs.length !== 1) report("nodes", `Expected one input node: there are ${inputs.length}`);
  if (depth > 0 && inputs.length > 0)
    report(`${path}nodes`, "Expected no input node in a map: its nodes refer to $.item");
  if (!nodes.some(({ type }) => type === "output")) report(`${path}nodes`, "Expected at least one output node");
  if (depth > workflowLimits.depthMax)
    report(path.slice(0, -1), `Expected at most ${workflowLimits.depthMax} maps in each other`);
}

function checkNode(node: WorkflowNode, path: string, report: Report): void {
  const kind = kindOf(node);
  if (!kind) {
    const names = nodeKinds.map((known) => known.kind).join(", ");
    const isLater = laterNodeKinds.includes(node.type);
    report(`${path}.type`, isLater ? `${node.type} nodes are not available yet` : `Expected one of ${names}`);
    return;
  }
  for (const problem of configProblems(node)) report(`${path}.config${problem.path}`, problem.message);
  if (kind.isContainer && node.retry) {
    report(`${path}.retry`, `Expected no retry of a ${node.type}: the nodes inside of it have theirs`);
  }
  const config = fittingConfig(node);
  if (config) kind.check?.(config, { node, path: `${path}.config`, report });
}

function checkEdges({ nodes, edges }: SubGraph, place: Place, report: Report): void {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const seen = new Set<string>();
  for (const [index, edge] of edges.entries()) {
    const path = `${place.path}edges.${index}`;
    const from = byId.get(edge.from);
    const to = byId.get(edge.to);
    if (!from) report(`${path}.from`, `Expected a node's id: ${edge.from} is none`);
    if (!to) report(`${path}.to`, `Expected a node's id: ${edge.to} is none`);
    if (to?.type === "input") report(`${path}.to`, "Expected another node than input: nothing leads to it");
    const key = `${edge.from} ${handleOf(edge)} ${edge.to}`;
    if (seen.has(key)) report(path, "Expected each edge once");
    seen.add(key);
    if (!from) continue;
    const own = handlesOf(from);
    if (!own) continue;
    const handles = [...own, ...(from.type === "input" || from.type === "output" ? [] : [errorHandle])];
    if (!handles.includes(handleOf(edge))) {
      report(
        `${path}.handle`,
        handles.length > 0 ? `Expected one of ${handles.join(", ")}` : "Expected no edge out of an output node",
      );
    }
  }
}

/** No cycles, nothing that cannot be reached, references to ancestors only. */
function checkOrder({ nodes, edges }: SubGraph, place: Place, report: Report): void {
  const graph = graphOf({ nodes, edges });
  const ancestors = ancestorsIn(graph);
  for (const [index, node] of nodes.entries()) {
    const path = `${place.path}nodes.${index}`;
    const own = ancestors.get(node.id);
    if (!own) {
      report(path, `Expected no cycle: ${node.id} is on one or behind one`);
      continue;
    }
    const before = new Set([...place.before, ...own]);
    if (place.depth === 0 && node.type !== "input" && graph.get(node.id)?.incoming.length === 0) {
      report(path, `Expected an edge to ${node.id}: nothing leads to it`);
    }
    const streamed = node.type === "output" ? node.config?.stream_from : undefined;
    if (typeof streamed === "string" && !own.has(streamed)) {
      report(`${path}.config.stream_from`, `Expected a node before ${node.id}: ${streamed} is none`);
    }
    for (const reference of referencesOf(node)) {
      const problem = referenceProblem(reference) ?? targetProblem(reference, before, place);
      if (problem) report(`${path}.inputs`, `${problem}: ${reference}`);
    }
    const body = bodyOf(node);
    if (body && place.depth <= workflowLimits.depthMax)
      checkGraph(body, { path: `${path}.config.body.`, depth: place.depth + 1, before }, report);
  }
}

function referencesOf(node: WorkflowNode): string[] {
  return referencesIn([node.inputs, kindOf(node)?.references?.(node.config ?? {})]);
}

function targetProblem(reference: string, before: ReadonlySet<string>, { depth }: Place): string | undefined {
  const root = referencedRoot(reference);
  if (root === "input" || root === "run") return undefined;
  if (depth > 0 && (root === "item" || root === "index")) return undefined;
  if (root !== "nodes")
    return `Expected a path below $.input, $.nodes or $.run${depth > 0 ? ", $.item or $.index" : ""}`;
  const node = referencedNode(reference);
  if (node === undefined) return "Expected a node's id after $.nodes";
  return before.has(node) ? undefined : `Expected a node before this one: ${node} is none`;
}
