/**
 * Schema nodes, the interface document's small schema language (`required` stands on the child,
 * unknown fields are allowed), compiled to JSON Schema and checked by ajv.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { ErrorDetails } from "#contracts/errors.ts";
import type { SchemaNode } from "#contracts/workflow.ts";

const ajv = new Ajv({ allErrors: true, strict: false });
const problemsMax = 20;

/** Answers the problems of a value by field path, an empty object for a valid one. */
export type SchemaCheck = (value: unknown) => ErrorDetails;

/** @param at path that the reported fields are below, for example `input` */
export function compileSchemaNode(node: SchemaNode, at: string): SchemaCheck {
  const validate: ValidateFunction = ajv.compile(jsonSchemaOf(node));
  // ajv keeps what it compiled for ever; ours comes and goes with its workflow.
  ajv.removeSchema(validate.schema as object);
  return (value) => {
    if (validate(value)) return {};
    const problems = (validate.errors ?? []).slice(0, problemsMax);
    return Object.fromEntries(problems.map((problem) => [pathOf(problem, at), messageOf(problem)]));
  };
}

/** The JSON Schema (2020-12 vocabulary) that means the same as `node`. */
export function jsonSchemaOf(node: SchemaNode): Record<string, unknown> {
  const { type, description, properties, items } = node;
  const required = Object.entries(properties ?? {})
    .filter(([, child]) => child.required)
    .map(([name]) => name);
  return {
    ...(type !== "any" && { type }),
    ...(description !== undefined && { description }),
    ...(node.enum && { enum: node.enum }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, jsonSchemaOf(child)])),
    }),
    ...(required.length > 0 && { required }),
    ...(items && { items: jsonSchemaOf(items) }),
  };
}

function pathOf(problem: ErrorObject, at: string): string {
  const missing = problem.keyword === "required" ? [String(problem.params.missingProperty)] : [];
  const parts = problem.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return [at, ...parts, ...missing].join(".");
}

function messageOf({ keyword, params, message }: ErrorObject): string {
  switch (keyword) {
    case "required":
      return "Expected a value: the field is required";
    case "type":
      return `Expected ${params.type}`;
    case "enum":
      return `Expected one of ${params.allowedValues.map((value: unknown) => JSON.stringify(value)).join(", ")}`;
    default:
      return `Expected a value that ${message ?? "fits the schema"}`;
  }
}
