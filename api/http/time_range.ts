/** Time filters of lists: `started_at:gte=…`, with `gt` or `gte` and `lt` or `lte`. */
import { type TOptional, type TString, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";

const operators = ["gt", "gte", "lt", "lte"] as const;
const words = { gt: "after", gte: "at or after", lt: "before", lte: "at or before" } as const;
type Operator = (typeof operators)[number];

/** Query fields for one column; spread them into a route's `query`. */
export function timeRangeQuery<const Column extends string>(column: Column) {
  const fields = operators.map((operator) => [
    `${column}:${operator}`,
    Type.Optional(Type.String({ format: "date-time", about: `those whose ${column} is ${words[operator]} this time` })),
  ]);
  return Object.fromEntries(fields) as Record<`${Column}:${Operator}`, TOptional<TString>>;
}

export interface TimeBound {
  comparison: ">" | ">=" | "<" | "<=";
  at: Date;
}

/** The bounds that a query sets. @throws ApiError bad_request for both forms of one bound */
export function timeBoundsOf(query: Readonly<Record<string, unknown>>, column: string): TimeBound[] {
  for (const [strict, inclusive] of [
    ["gt", "gte"],
    ["lt", "lte"],
  ]) {
    if (query[`${column}:${strict}`] !== undefined && query[`${column}:${inclusive}`] !== undefined) {
      const message = `Expected either ${column}:${strict} or ${column}:${inclusive}`;
      throw new ApiError("bad_request", { details: { [`${column}:${strict}`]: message } });
    }
  }
  const comparisons = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;
  return operators.flatMap((operator) => {
    const text = query[`${column}:${operator}`];
    return typeof text === "string" ? [{ comparison: comparisons[operator], at: new Date(text) }] : [];
  });
}
