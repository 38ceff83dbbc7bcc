/**
 * References into what a run knows: JSONPath (RFC 9535) over
 * `{input, nodes: {<id>: {output}}, run: {id, session_id, user_id, metadata}}`. A string that begins
 * with `$` is a reference, `$$…` a literal `$…`, every other value a literal.
 */
import { query } from "jsonpath-rfc9535";
import parse from "jsonpath-rfc9535/parser";

/** `match` and `search` run on the language's backtracking engine: a pattern could stall a worker. */
const refusedFunctions = new Set(["match", "search"]);
const referenceLengthMax = 2000;

export function isReference(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("$") && !value.startsWith("$$");
}

/** A problem of `path`'s syntax, or undefined. */
export function referenceProblem(path: string): string | undefined {
  if (path.length > referenceLengthMax) return `Expected at most ${referenceLengthMax} characters`;
  let tree: unknown;
  try {
    tree = parse(path);
  } catch {
    return "Expected a JSONPath (RFC 9535)";
  }
  const refused = functionsIn(tree).find((name) => refusedFunctions.has(name));
  return refused && `Expected a JSONPath without ${refused}()`;
}

/** The node that `path` reads from, or undefined where it reads no single node's output. */
export function referencedNode(path: string): string | undefined {
  const [root, node] = staticNames(path);
  return root === "nodes" ? node : undefined;
}

/** What `path` begins with: `input`, `nodes`, `run`, or undefined for anything else (`$`, `$..x`, `$[*]`). */
export function referencedRoot(path: string): string | undefined {
  return staticNames(path)[0];
}

/** The first match in `context`; undefined without one. */
export function resolveReference(path: string, context: object): unknown {
  return query(context as never, path)[0];
}

/** The value that `value` stands for: a reference resolved, an escape undone, a literal as it is. */
export function resolveValue(value: unknown, context: object): unknown {
  if (isReference(value)) return resolveReference(value, context);
  if (typeof value === "string" && value.startsWith("$$")) return value.slice(1);
  if (Array.isArray(value)) return value.map((item) => resolveValue(item, context));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolveValue(item, context)]));
  }
  return value;
}

/** Every reference in `value`, however deep. */
export function referencesIn(value: unknown): string[] {
  if (isReference(value)) return [value];
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap(referencesIn);
}

interface Tree {
  type?: string;
  name?: string;
  value?: unknown;
  node?: Tree;
  segments?: Tree[];
  selectors?: Tree[];
}

/** Leading member names of the path, in either notation: `$.a['b'].c[0]` gives a, b, c. */
function staticNames(path: string): string[] {
  const names: string[] = [];
  for (const segment of (parse(path) as unknown as Tree).segments ?? []) {
    const node = segment.type === "ChildSegment" ? segment.node : undefined;
    const name =
      node?.type === "MemberNameShorthand"
        ? node.value
        : node?.selectors?.length === 1 && node.selectors[0]?.type === "NameSelector"
          ? node.selectors[0].value
          : undefined;
    if (typeof name !== "string") break;
    names.push(name);
  }
  return names;
}

function functionsIn(tree: unknown): string[] {
  if (tree === null || typeof tree !== "object") return [];
  const { type, name } = tree as Tree;
  const own = type === "FunctionExpr" && name ? [name] : [];
  return [...own, ...Object.values(tree).flatMap(functionsIn)];
}
