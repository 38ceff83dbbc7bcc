/**
 * Checks values against TypeBox schemas and says what is wrong by field path, in words that name
 * the expectation: `{"config.advanced.eos_silence_ms": "Expected integer to be greater or equal to 100"}`.
 */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import "#contracts/one_of.ts";

/** More problems than this are not listed: the first ones are what a reader mends. */
const problemsMax = 50;
/** Deeper JSON than any schema of ours, and well below what a recursive reader can bear. */
const depthMax = 64;

export interface Validator<T> {
  /** Problems by field path, or undefined when `value` is a `T`. `under` is put before each path. */
  problemsOf(value: unknown, under?: string): ErrorDetails | undefined;
  /** @throws ApiError bad_request with the problems as details */
  parse(value: unknown, under?: string): T;
}

/** Compiles `schema` once; do it when a module loads, not for each request. */
export function validatorFor<S extends TSchema>(schema: S): Validator<Static<S>> {
  const compiled = TypeCompiler.Compile(schema);
  const problemsOf = (value: unknown, under = ""): ErrorDetails | undefined => {
    if (compiled.Check(value)) return undefined;
    const problems = new Map<string, string>();
    for (const error of compiled.Errors(value)) {
      const path = fieldPath(under, error.path);
      if (!problems.has(path)) problems.set(path, explain(error));
      if (problems.size >= problemsMax) break;
    }
    return Object.fromEntries(problems);
  };
  const parse = (value: unknown, under = ""): Static<S> => {
    const details = problemsOf(value, under);
    if (details) throw new ApiError("bad_request", { details });
    return value as Static<S>;
  };
  return { problemsOf, parse };
}

/** `/config/tools/0/url` (RFC 6901) below `under` as `under.config.tools.0.url`. */
function fieldPath(under: string, pointer: string): string {
  const names = pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~").slice(0, 100));
  return [...(under ? [under] : []), ...names].join(".") || "body";
}

function explain({ type, schema, message }: ValueError): string {
  const { enum: words, description, format } = schema as { enum?: unknown[]; description?: string; format?: string };
  switch (type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return "Unknown field";
    case ValueErrorType.ObjectRequiredProperty:
      return "Required";
    case ValueErrorType.Kind:
      if (words) return words.length > 0 ? `Expected one of ${words.join(", ")}` : "Not available yet";
      return message;
    case ValueErrorType.StringPattern:
      return description ? `Expected ${description}` : message;
    case ValueErrorType.StringFormat:
      return format === "date-time" ? "Expected a time in RFC 3339 form" : `Expected a ${format}`;
    case ValueErrorType.Union: {
      if (description) return `Expected ${description}`;
      const values = (schema as { anyOf?: { const?: unknown }[] }).anyOf?.map((one) => one.const);
      return values?.every((value) => value !== undefined) ? `Expected one of ${values.join(", ")}` : message;
    }
    default:
      return message;
  }
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
