/**
 * A route's examples, put where OpenAPI has room for each part of them: path and query beside their
 * parameters, the body and the answer beside their schemas, all by the example's name.
 */
import type { Route, RouteExample } from "../route.ts";

/** What an id looks like, where the real one comes out of another route's answer. */
const someId = "0b7f9a52-2f3c-4c58-9a3e-0f1d5c7b9e01";

const someNumber = 17;

type Shown = { examples?: Record<string, { summary: string; value: unknown }> };

export function examplesIn({ examples = {}, params = {}, reply }: Route["spec"]) {
  const shown = (pick: (example: RouteExample) => unknown): Shown => {
    const found = Object.entries(examples).flatMap(([name, example]) => {
      const value = pick(example);
      return value === undefined ? [] : [[name, { summary: name.replaceAll("_", " "), value }] as const];
    });
    return found.length > 0 ? { examples: Object.fromEntries(found) } : {};
  };
  return {
    ofPath: (name: string) => shown((one) => one.params?.[name] ?? (name in params ? someNumber : someId)),
    ofQuery: (name: string) => shown((one) => one.query?.[name]),
    ofBody: () => shown((one) => one.body),
    ofAnswer: (status: number) => shown((one) => ((one.status ?? reply.status) === status ? one.answer : undefined)),
  };
}
