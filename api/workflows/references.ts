/**
 * References into what a run knows: JSONPath (RFC 9535) over
 * `{input, nodes: {<id>: {output}}, run: {id, session_id, user_id, metadata}}`. A string that begins
 * with `$` is a reference, `$$…` a literal `$…`, every other value a literal.
 */
import { query } from "jsonpath-rfc9535";
import parse from "jsonpath-rfc9535/parser";
import { countedAccess } from "./counted_access.ts";
import { type Budget, spendValue } from "./evaluation_budget.ts";

/** `match` and `search` run on the language's backtracking engine: a pattern could stall a worker. */
const refusedFunctions = new Set(["match", "search"]);
const referenceLengthMax = 2000;

export function isReference(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("$") && !value.startsWith("$$");
}

/** A problem of `path`'s syntax, or undefined. */
export function referenceProblem(path: string): string | undefined {
  if (path.length > referenceLengthMax) return `Expected at most ${referenceLengthMax} characters`;
  const position = secondDescent(path);
  if (position !== undefined) {
    return `Expected one descendant segment (..) at most: there is a second one at position ${position}`;
  }
  if (plainPath(path)) return undefined;
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

/**
 * The first match in `context`; undefined without one.
 * @throws EvaluationError for one that looks at more values than `budget` has steps
 */
export function resolveReference(path: string, context: object, budget: Budget): unknown {
  const steps = plainPath(path);
  const found = steps ? valueAt(context, steps, budget) : queriedFirst(path, context, budget);
  spendValue(budget, found);
  return found;
}

/** The value that `value` stands for: a reference resolved, an escape undone, a literal as it is. */
export function resolveValue(value: unknown, context: object, budget: Budget): unknown {
  budget.spend(1);
  if (isReference(value)) return resolveReference(value, context, budget);
  if (typeof value === "string" && value.startsWith("$$")) return value.slice(1);
  if (Array.isArray(value)) return value.map((item) => resolveValue(item, context, budget));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolveValue(item, context, budget)]));
  }
  return value;
}

/** Nearly all references, `$.nodes.ask.output.items[0].text`, are names and places alone. They need no parser. */
const plainSegment = /\.([A-Za-z_][A-Za-z0-9_]*)|\['([^'\\\p{Cc}]*)'\]|\[(0|[1-9][0-9]{0,8})\]/uy;

export function isPlainReference(path: string): boolean {
  return plainPath(path) !== undefined;
}

function plainPath(path: string): (string | number)[] | undefined {
  const steps: (string | number)[] = [];
  for (let at = 1; at < path.length; at = plainSegment.lastIndex) {
    plainSegment.lastIndex = at;
    const found = plainSegment.exec(path);
    if (!found) return undefined;
    steps.push(found[1] ?? found[2] ?? Number(found[3]));
  }
  return steps;
}

function valueAt(context: object, steps: readonly (string | number)[], budget: Budget): unknown {
  budget.spend(steps.length);
  let value: unknown = context;
  for (const step of steps) {
    const isPlace = typeof step === "number";
    if (value === null || typeof value !== "object" || Array.isArray(value) !== isPlace) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}

/** The library walks for as long as the path makes it: it is shown values that count how often they are looked at. */
function queriedFirst(path: string, context: object, budget: Budget): unknown {
  budget.spend(path.length * parsingStepsOfChar);
  const access = countedAccess(budget);
  return access.original(query(access.counted(context) as never, path)[0]);
}

/** Parsing takes one to five microseconds a character, and the library does it each time. */
const parsingStepsOfChar = 20;

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

/** Where the second `..` outside of quotes begins: one walks through everything, two through everything's everything. */
function secondDescent(path: string): number | undefined {
  const tokens = path.matchAll(/'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\.\./gs);
  return [...tokens].filter(([token]) => token === "..")[1]?.index;
}

/** Leading member names of the path, in either notation: `$.a['b'].c[0]` gives a, b, c. */
function staticNames(path: string): string[] {
  const plain = plainPath(path);
  if (plain) {
    const place = plain.findIndex((step) => typeof step === "number");
    return (place < 0 ? plain : plain.slice(0, place)) as string[];
  }
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
