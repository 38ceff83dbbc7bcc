/**
 * Checks values against TypeBox schemas and says what is wrong by field path, in words that name
 * the expectation: `{"config.advanced.eos_silence_ms": "Expected integer to be greater or equal to 100"}`.
 */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { ApiError, type ErrorDetails, type ValidationIssue } from "#contracts/errors.ts";
import "#contracts/one_of.ts";

/** More problems than this are not listed: the first ones are what a reader mends. */
const problemsMax = 50;
/** Deeper JSON than any schema of ours, and well below what a recursive reader can bear. */
const depthMax = 64;

/** Which part of a request a value is. */
export type RequestPart = "body" | "query" | "path";

export interface Validator<T> {
  /** Problems by field path, or undefined when `value` is a `T`. `under` is put before each path. */
  problemsOf(value: unknown, under?: string): ErrorDetails | undefined;
  /** @throws ApiError bad_request with the problems as details and as issues of that part */
  parse(value: unknown, part?: RequestPart): T;
}

interface Problem {
  type: string;
  /** Names below the value, from RFC 6901. */
  names: string[];
  msg: string;
}

/** Compiles `schema` once; do it when a module loads, not for each request. */
export function validatorFor<S extends TSchema>(schema: S): Validator<Static<S>> {
  const compiled = TypeCompiler.Compile(schema);
  const problemsIn = (value: unknown): Problem[] => {
    if (compiled.Check(value)) return [];
    const problems = new Map<string, Problem>();
    for (const error of narrowed(compiled.Errors(value))) {
      if (!problems.has(error.path)) {
        problems.set(error.path, { type: issueTypeOf(error), names: namesOf(error.path), msg: explain(error) });
      }
      if (problems.size >= problemsMax) break;
    }
    return [...problems.values()];
  };
  const problemsOf = (value: unknown, under = ""): ErrorDetails | undefined => {
    const problems = problemsIn(value);
    return problems.length > 0 ? detailsOf(problems, under) : undefined;
  };
  const parse = (value: unknown, part: RequestPart = "body"): Static<S> => {
    const problems = problemsIn(value);
    if (problems.length === 0) return value as Static<S>;
    const issues = problems.map(({ type, names, msg }) => ({ type, loc: locationOf(part, names, value), msg }));
    throw new ApiError("bad_request", { details: detailsOf(problems), issues });
  };
  return { problemsOf, parse };
}

/**
 * Of alternatives only one of which has the value's shape, an object or a list, what is wrong with
 * that one: whoever sent an object wants to know which of its fields is at fault.
 */
function* narrowed(errors: Iterable<ValueError>): Iterable<ValueError> {
  for (const error of errors) {
    const { anyOf } = error.schema as { anyOf?: { type?: string }[] };
    const shape = Array.isArray(error.value) ? "array" : typeof error.value;
    const fitting = error.type === ValueErrorType.Union ? (anyOf ?? []) : [];
    const [index, ...others] = fitting.flatMap(({ type }, at) => (type === shape ? [at] : []));
    const within = index === undefined || others.length > 0 ? undefined : error.errors[index];
    if (within && (shape === "object" || shape === "array")) yield* narrowed(within);
    else yield error;
  }
}

/** A request that does not fit, with one problem: for checks that no schema can express. `path` as `a.0.b`. */
export function invalidRequest(part: RequestPart, path: string, msg: string, type = "value_error"): ApiError {
  const names = path === "" || path === part ? [] : path.split(".");
  const loc = [part, ...(names.length > 0 ? names.map(indexOrName) : [wholeDocument])];
  return new ApiError("bad_request", { details: { [path || part]: msg }, issues: [{ type, loc, msg }] });
}

const detailsOf = (problems: readonly Problem[], under = ""): ErrorDetails =>
  Object.fromEntries(problems.map(({ names, msg }) => [fieldPath(under, names), msg]));

/** Stands for a document as a whole, so that whoever joins a location's parts has something to show. */
const wholeDocument = "json";

function locationOf(part: RequestPart, names: readonly string[], value: unknown): ValidationIssue["loc"] {
  if (names.length === 0) return [part, wholeDocument];
  let at = value;
  const parts = names.map((name) => {
    const isIndex = Array.isArray(at);
    at = (at as Record<string, unknown> | undefined)?.[name];
    return isIndex ? Number(name) : name;
  });
  return [part, ...parts];
}

const indexOrName = (name: string) => (/^\d{1,9}$/.test(name) ? Number(name) : name);

const issueTypes: Partial<Record<ValueErrorType, string>> = {
  [ValueErrorType.ObjectRequiredProperty]: "missing",
  [ValueErrorType.ObjectAdditionalProperties]: "extra_forbidden",
  [ValueErrorType.Object]: "object_type",
  [ValueErrorType.Array]: "array_type",
  [ValueErrorType.ArrayMinItems]: "too_short",
  [ValueErrorType.ArrayMaxItems]: "too_long",
  [ValueErrorType.Boolean]: "bool_type",
  [ValueErrorType.Integer]: "int_type",
  [ValueErrorType.IntegerMinimum]: "greater_than_equal",
  [ValueErrorType.IntegerMaximum]: "less_than_equal",
  [ValueErrorType.Number]: "number_type",
  [ValueErrorType.NumberMinimum]: "greater_than_equal",
  [ValueErrorType.NumberMaximum]: "less_than_equal",
  [ValueErrorType.NumberExclusiveMinimum]: "greater_than",
  [ValueErrorType.NumberExclusiveMaximum]: "less_than",
  [ValueErrorType.NumberMultipleOf]: "multiple_of",
  [ValueErrorType.String]: "string_type",
  [ValueErrorType.StringMinLength]: "string_too_short",
  [ValueErrorType.StringMaxLength]: "string_too_long",
  [ValueErrorType.StringPattern]: "string_pattern_mismatch",
  [ValueErrorType.StringFormat]: "string_format_mismatch",
  [ValueErrorType.Kind]: "enum",
};

/** A field that is undefined is missing, as one that is not there. */
const isMissing = ({ type, value }: ValueError) =>
  value === undefined && type !== ValueErrorType.ObjectAdditionalProperties;

const issueTypeOf = (error: ValueError) => (isMissing(error) ? "missing" : (issueTypes[error.type] ?? "value_error"));

/** `/config/tools/0/url` (RFC 6901) as its names. */
function namesOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~").slice(0, 100));
}

/** Names below `under` as `under.config.tools.0.url`. */
function fieldPath(under: string, names: readonly string[]): string {
  return [...(under ? [under] : []), ...names].join(".") || "body";
}

function explain(error: ValueError): string {
  const { type, schema, message, path } = error;
  if (isMissing(error)) return "Required";
  const { enum: words, description, format } = schema as { enum?: unknown[]; description?: string; format?: string };
  switch (type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return unknownField(namesOf(path).at(-1) ?? "", Object.keys(schema.properties ?? {}));
    case ValueErrorType.Kind:
      if (words) return words.length > 0 ? `Expected one of ${words.join(", ")}` : "Not available yet";
      return message;
    case ValueErrorType.StringPattern:
      return description ? `Expected ${description}` : message;
    case ValueErrorType.StringFormat:
      if (format === "date-time") return "Expected a time in RFC 3339 form";
      return `Expected ${description ?? `a ${format}`}`;
    case ValueErrorType.Union: {
      if (description) return `Expected ${description}`;
      const values = (schema as { anyOf?: { const?: unknown }[] }).anyOf?.map((one) => one.const);
      return values?.every((value) => value !== undefined) ? `Expected one of ${values.join(", ")}` : message;
    }
    default:
      return message;
  }
}

/** A slip of this many letters is taken for the field that was meant. */
const slipMax = 2;

function unknownField(name: string, known: readonly string[]): string {
  const distances = known.map((field) => ({ field, distance: editDistance(name, field) }));
  const meant = distances.sort((a, b) => a.distance - b.distance)[0];
  if (!meant || meant.distance > Math.min(slipMax, name.length - 1)) return "Unknown field";
  return `Unknown field: did you mean ${meant.field}?`;
}

/** Letters to put in, take out or change between two names (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [index, against] of [...other].entries()) {
      const changed = (row[index] ?? 0) + (letter === against ? 0 : 1);
      next.push(Math.min(changed, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/**
 * What JSON allows and neither Postgres nor a text-to-speech engine can take: U+0000 and halves of
 * surrogate pairs in a string, or a nesting deeper than `depthMax`. Answers the first such field.
 */
export function textProblemIn(value: unknown): { path: string; message: string } | undefined {
  const open: { value: unknown; path: string; depth: number }[] = [{ value, path: "", depth: 0 }];
  for (let item = open.pop(); item; item = open.pop()) {
    if (typeof item.value === "string") {
      const message = textProblem(item.value);
      if (message) return { path: item.path || "body", message };
    } else if (typeof item.value === "object" && item.value !== null) {
      if (item.depth >= depthMax) return { path: topOf(item.path), message: `Expected at most ${depthMax} levels` };
      for (const [key, child] of Object.entries(item.value)) {
        const message = textProblem(key);
        if (message) return { path: item.path || "body", message: `In a field's name: ${message}` };
        open.push({ value: child, path: item.path ? `${item.path}.${key}` : key, depth: item.depth + 1 });
      }
    }
  }
  return undefined;
}

const topOf = (path: string) => path.split(".", 1)[0] || "body";

function textProblem(text: string): string | undefined {
  if (text.includes("\0")) return "Expected text without U+0000";
  return isWellFormed(text) ? undefined : "Expected well-formed Unicode";
}

/** `String.prototype.isWellFormed` is in Node 20 and Deno, but not yet in the ES2023 typings. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
