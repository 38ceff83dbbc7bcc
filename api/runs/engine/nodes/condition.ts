/** Leaves by the handle of the first case that holds, else by `else`. */
import { isDeepStrictEqual } from "node:util";
import { RE2JS } from "re2js";
import type { conditionOps, NodeConfig } from "#contracts/workflow.ts";
import { resolveValue } from "#workflows/references.ts";
import { type ExecuteNode, NodeError, type RunContext } from "../node_kind.ts";

type Case = NodeConfig<"condition">["cases"][number];
type Test = NonNullable<Case["all"]>[number];

export const executeCondition: ExecuteNode<"condition"> = ({ config, context }) => {
  const taken = config.cases.find((candidate) => caseHolds(candidate, context));
  const handle = taken?.handle ?? "else";
  return { is: "done", output: { handle }, handle };
};

function caseHolds({ all, any }: Case, context: RunContext): boolean {
  const holds = (test: Test) => compare(resolveValue(test.left, context), test.op, resolveValue(test.right, context));
  return all ? all.every(holds) : (any ?? []).some(holds);
}

/** Whether `left op right`. Numbers compare as numbers, texts by code point; other pairs have no order. */
export function compare(left: unknown, op: (typeof conditionOps)[number], right: unknown): boolean {
  switch (op) {
    case "eq":
      return isDeepStrictEqual(left, right);
    case "ne":
      return !isDeepStrictEqual(left, right);
    case "gt":
      return order(left, right) > 0;
    case "gte":
      return order(left, right) >= 0;
    case "lt":
      return order(left, right) < 0;
    case "lte":
      return order(left, right) <= 0;
    case "in":
      return contains(right, left);
    case "contains":
      return contains(left, right);
    case "starts_with":
      return typeof left === "string" && typeof right === "string" && left.startsWith(right);
    case "matches":
      return typeof left === "string" && patternOf(right).matcher(left).find();
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

function contains(whole: unknown, part: unknown): boolean {
  if (typeof whole === "string") return typeof part === "string" && whole.includes(part);
  return Array.isArray(whole) && whole.some((item) => isDeepStrictEqual(item, part));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Linear in the text's length, whatever the pattern. */
function patternOf(pattern: unknown): RE2JS {
  try {
    return RE2JS.compile(String(pattern));
  } catch (cause) {
    throw new NodeError("bad_pattern", `Expected a regular expression (RE2): ${JSON.stringify(pattern)} is none`, {
      cause,
    });
  }
}
