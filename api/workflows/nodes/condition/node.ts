/** Leaves by the handle of the first case that holds, else by `else`. */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { errorHandle } from "#contracts/workflow.ts";
import { type Budget, equalValues } from "../../evaluation_budget.ts";
import { includesText, matches, patternProblem } from "../../patterns.ts";
import { isReference, resolveValue } from "../../references.ts";
import { config, handle, optional, reference } from "../config_schemas.ts";
import { defineNode, type ExecuteNode, NodeError, type NodeReport, type RunContext } from "../node_kind.ts";

const conditionOps = [
  "eq",
  "ne",
  "gt",
  "gte",
  "lt",
  "lte",
  "in",
  "contains",
  "starts_with",
  "matches",
  "exists",
  "empty",
] as const;
const ConditionTest = config({ left: reference(), op: oneOf(conditionOps), right: optional(reference()) });
const ConditionCase = config({
  handle: handle(),
  all: optional(Type.Array(ConditionTest, { maxItems: 50 })),
  any: optional(Type.Array(ConditionTest, { maxItems: 50 })),
});
const ConditionConfig = config({ cases: Type.Array(ConditionCase, { minItems: 1, maxItems: 50 }) });
type ConditionConfig = Static<typeof ConditionConfig>;
type Case = ConditionConfig["cases"][number];
type Test = NonNullable<Case["all"]>[number];

const execute: ExecuteNode<ConditionConfig> = ({ config, context, budget }) => {
  const taken = config.cases.find((candidate) => caseHolds(candidate, context, budget));
  const handle = taken?.handle ?? "else";
  return { is: "done", output: { handle }, handle };
};

function caseHolds({ all, any }: Case, context: RunContext, budget: Budget): boolean {
  const sideOf = (side: unknown) => resolveValue(side, context, budget);
  const holds = (test: Test) => compare(sideOf(test.left), test.op, sideOf(test.right), budget);
  return all ? all.every(holds) : (any ?? []).some(holds);
}

/** Whether `left op right`. Numbers compare as numbers, texts by code point; other pairs have no order. */
export function compare(left: unknown, op: (typeof conditionOps)[number], right: unknown, budget: Budget): boolean {
  switch (op) {
    case "eq":
      return equalValues(left, right, budget);
    case "ne":
      return !equalValues(left, right, budget);
    case "gt":
      return order(left, right) > 0;
    case "gte":
      return order(left, right) >= 0;
    case "lt":
      return order(left, right) < 0;
    case "lte":
      return order(left, right) <= 0;
    case "in":
      return contains(right, left, budget);
    case "contains":
      return contains(left, right, budget);
    case "starts_with":
      return typeof left === "string" && typeof right === "string" && left.startsWith(right);
    case "matches":
      return typeof left === "string" && fits(left, right, budget);
    case "exists":
      return left !== undefined && left !== null;
    case "empty":
      return isEmpty(left);
  }
}

/** Negative, zero or positive; NaN, which every comparison denies, for what has no order. */
function order(left: unknown, right: unknown): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "string" && typeof right === "string") return left < right ? -1 : left > right ? 1 : 0;
  return Number.NaN;
}

function contains(whole: unknown, part: unknown, budget: Budget): boolean {
  if (typeof whole === "string") return typeof part === "string" && includesText(whole, part, budget);
  return Array.isArray(whole) && whole.some((item) => equalValues(item, part, budget));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** A pattern may come from the run itself: then nobody has looked at it yet. */
function fits(text: string, right: unknown, budget: Budget): boolean {
  const pattern = String(right);
  const problem = patternProblem(pattern);
  if (problem) throw new NodeError("bad_pattern", problem);
  return matches(pattern, text, budget);
}

function check({ cases }: ConditionConfig, { path, report }: NodeReport): void {
  const seen = new Set(["else", errorHandle]);
  for (const [index, { handle, all, any }] of cases.entries()) {
    if (seen.has(handle)) report(`${path}.cases.${index}.handle`, `Expected a unique handle: ${handle} is taken`);
    seen.add(handle);
    if (Boolean(all) === Boolean(any)) report(`${path}.cases.${index}`, "Expected either all or any");
    for (const { op, right } of [...(all ?? []), ...(any ?? [])]) {
      if (op !== "matches" || isReference(right)) continue;
      const problem = patternProblem(String(right));
      if (problem) report(`${path}.cases.${index}`, problem);
    }
  }
}

export const condition = defineNode({
  kind: "condition",
  words: { name: "Condition", icon: "M5 12h5m0 0 8-6m-8 6 8 6M14 5.500h4.500V10M14 18.500h4.500V14" },
  config: ConditionConfig,
  check,
  handles: ({ cases }) => [...cases.map(({ handle }) => handle), "else"],
  references: ({ cases }) => cases,
  execute,
});
