import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { ancestorsIn, graphOf } from "#workflows/workflow_graph.ts";
import { type NodeState, nextSteps } from "./stepper.ts";

/** `"a>b a-yes>c"`: edges with their handles; nodes in order of appearance, `c?` joins any. */
function graph(text: string) {
  const nodes = new Map<string, { id: string; type: string; join?: "all" | "any" }>();
  const node = (name: string) => {
    const id = name.replace("?", "");
    if (!nodes.has(id)) nodes.set(id, { id, type: "template" });
    if (name.endsWith("?")) nodes.set(id, { id, type: "template", join: "any" });
    return id;
  };
  const edges = text.split(" ").map((edge) => {
    const [left = "", right = ""] = edge.split(">");
    const [from = "", handle] = left.split("-");
    return { from: node(from), to: node(right), ...(handle && { handle }) };
  });
  return graphOf({ nodes: [...nodes.values()], edges } as Pick<WorkflowDefinition, "nodes" | "edges">);
}

const went = (handle = "default"): NodeState => ({ is: "succeeded", handle });
const steps = (text: string, states: Record<string, NodeState>) => {
  const { start, skip, done, failedNode } = nextSteps(graph(text), new Map(Object.entries(states)));
  return { start, skip, done, ...(failedNode && { failedNode }) };
};

describe("the stepper", () => {
  it("starts what nothing leads to, and parallel branches together", () => {
    assert.deepEqual(steps("in>a in>b", {}), { start: ["in"], skip: [], done: false });
    assert.deepEqual(steps("in>a in>b", { in: went() }), { start: ["a", "b"], skip: [], done: false });
  });

  it("joins all: waits for every branch, and counts skipped ones as done", () => {
    const text = "in>a in>b a>c b>c";
    assert.deepEqual(steps(text, { in: went(), a: went(), b: { is: "running" } }).start, []);
    assert.deepEqual(steps(text, { in: went(), a: went(), b: { is: "skipped" } }).start, ["c"]);
  });

  it("joins any: starts with the first branch", () => {
    const states = { in: went(), a: went(), b: { is: "running" } } as const;
    assert.deepEqual(steps("in>a in>b a>c? b>c", states).start, ["c"]);
  });

  it("takes the branch of the handle and skips the other one down to the join", () => {
    const text = "in>if if-yes>a if-else>b b>d a>out d>out";
    const result = steps(text, { in: went(), if: went("yes") });
    assert.deepEqual(result, { start: ["a"], skip: ["b", "d"], done: false });
  });

  it("fails the run by a node whose error no edge takes, and goes on where one does", () => {
    assert.equal(steps("in>a a>out", { in: went(), a: { is: "failed" } }).failedNode, "a");
    const handled = steps("in>a a>out a-error>rescue rescue>out", { in: went(), a: { is: "failed" } });
    assert.deepEqual(handled, { start: ["rescue"], skip: [], done: false });
  });

  it("is done when nothing runs, waits or can start", () => {
    assert.equal(steps("in>a", { in: went(), a: { is: "waiting" } }).done, false);
    assert.equal(steps("in>a", { in: went(), a: went() }).done, true);
    assert.deepEqual(steps("in>a in-no>b", { in: went(), a: went() }), { start: [], skip: ["b"], done: true });
  });

  it("brings every acyclic graph to its end, each node decided once", () => {
    const edges = fc.array(fc.tuple(fc.nat(9), fc.nat(9), fc.constantFrom("default", "left", "error")), {
      maxLength: 25,
    });
    fc.assert(
      fc.property(edges, fc.infiniteStream(fc.constantFrom("default", "left", "fail")), (pairs, fates) => {
        const nodes = Array.from({ length: 10 }, (_, i) => ({ id: `n${i}`, type: "template" }));
        const definition = {
          nodes,
          edges: pairs
            .filter(([a, b]) => a !== b)
            .map(([a, b, handle]) => ({ from: `n${Math.min(a, b)}`, to: `n${Math.max(a, b)}`, handle })),
        };
        const whole = graphOf(definition);
        const states = new Map<string, NodeState>();
        for (let round = 0; round <= nodes.length; round += 1) {
          const { start, skip, done } = nextSteps(whole, states);
          for (const id of [...start, ...skip]) assert.ok(!states.has(id), `${id} was decided twice`);
          for (const id of skip) states.set(id, { is: "skipped" });
          for (const id of start) {
            const fate = fates.next().value ?? "default";
            states.set(id, fate === "fail" ? { is: "failed" } : { is: "succeeded", handle: fate });
          }
          if (done) break;
        }
        assert.equal(states.size, nodes.length);
        assert.ok(nextSteps(whole, states).done);
      }),
    );
  });
});

describe("ancestors", () => {
  it("leaves out what is on a cycle or behind one", () => {
    const ancestors = ancestorsIn(graph("in>a a>b b>a b>c in>d"));
    assert.deepEqual([...ancestors.keys()].sort(), ["d", "in"]);
    assert.deepEqual([...(ancestors.get("d") ?? [])], ["in"]);
  });
});
