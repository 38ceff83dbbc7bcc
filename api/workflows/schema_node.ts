/**
 * Schema nodes, the interface document's small schema language (`required` stands on the child,
 * unknown fields are allowed). Values are checked in counted steps, by walking: a validator that compiles
 * schemas took ten seconds over one of 15,000 properties, and four over a list of choices for each of many items.
 */
import type { ErrorDetails } from "#contracts/errors.ts";
import type { SchemaNode } from "#contracts/workflow.ts";
import { type Budget, EvaluationError, equalValues, evaluationLimits, newBudget } from "./evaluation_budget.ts";

const problemsMax = 20;
/** Choices that a message names. */
const namedChoicesMax = 20;

/**
 * The problems of a value by field path, an empty object for a valid one.
 *
 * @param at path that the reported fields are below, for example `input`
 * @param budget of a node; without one the check has its own, and says so where that does not reach
 * @throws EvaluationError where `budget` does not reach
 */
export function schemaProblems(node: SchemaNode, value: unknown, at: string, budget?: Budget): ErrorDetails {
  const problems = new Map<string, string>();
  const own = budget ?? newBudget("the value's schema", evaluationLimits.schemaStepsMax);
  try {
    check(node, value, at, { problems, budget: own });
  } catch (error) {
    if (budget || !(error instanceof EvaluationError)) throw error;
    problems.set(at, error.message);
  }
  return Object.fromEntries(problems);
}

interface Check {
  problems: Map<string, string>;
  budget: Budget;
}

function check(node: SchemaNode, value: unknown, at: string, { problems, budget }: Check): void {
  budget.spend(1);
  if (problems.size >= problemsMax) return;
  if (!isOfType(value, node.type)) {
    problems.set(at, `Expected ${node.type}`);
    return;
  }
  if (node.enum && !node.enum.some((choice) => equalValues(choice, value, budget))) {
    const named = node.enum.slice(0, namedChoicesMax).map((choice) => JSON.stringify(choice));
    problems.set(at, `Expected one of ${named.join(", ")}${named.length < node.enum.length ? ", …" : ""}`);
  }
  if (Array.isArray(value)) {
    if (!node.items) return;
    for (const [index, item] of value.entries()) check(node.items, item, `${at}.${index}`, { problems, budget });
  } else if (value !== null && typeof value === "object") {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      budget.spend(1);
      if (Object.hasOwn(value, name)) {
        check(child, (value as Record<string, unknown>)[name], `${at}.${name}`, { problems, budget });
      } else if (child.required && problems.size < problemsMax) {
        problems.set(`${at}.${name}`, "Expected a value: the field is required");
      }
    }
  }
}

function isOfType(value: unknown, type: SchemaNode["type"]): boolean {
  switch (type) {
    case "any":
      return true;
    case "array":
      return Array.isArray(value);
    case "object":
      return value !== null && typeof value === "object" && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
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
