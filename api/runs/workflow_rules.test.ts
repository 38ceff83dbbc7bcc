import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { compileSchemaNode } from "./schema_node.ts";
import { workflowProblems } from "./workflow_rules.ts";

const input = { id: "in", type: "input" };
const output = { id: "out", type: "output", inputs: { answer: "$.nodes.say.output.text" } };
const say = { id: "say", type: "template", config: { template: "{{q}}" }, inputs: { q: "$.input.question" } };

/** A valid definition with `change` on top. */
function definition(change: Partial<WorkflowDefinition> = {}): WorkflowDefinition {
  const edges = [
    { from: "in", to: "say" },
    { from: "say", to: "out" },
  ];
  return { schema_version: 1, nodes: [input, say, output], edges, ...change };
}

/** The valid chain with `node` in place of `say`, under its id. */
const withNode = (node: Record<string, unknown>) => definition({ nodes: [input, { ...say, ...node }, output] });

describe("saving a workflow", () => {
  it("accepts what can run", () => {
    assert.deepEqual(workflowProblems(definition()), {});
  });

  const refused: [string, WorkflowDefinition, string, RegExp][] = [
    [
      "two input nodes",
      definition({ nodes: [input, { id: "in2", type: "input" }, say, output] }),
      "nodes",
      /one input node: there are 2/,
    ],
    ["no output node", definition({ nodes: [input, say], edges: [{ from: "in", to: "say" }] }), "nodes", /output node/],
    ["an id twice", definition({ nodes: [input, say, say, output] }), "nodes.2.id", /say is taken/],
    ["an unknown kind", withNode({ type: "magic" }), "nodes.1.type", /Expected one of input/],
    ["a kind that comes later", withNode({ type: "code" }), "nodes.1.type", /not available yet/],
    ["an unknown config field", withNode({ config: { template: "", more: 1 } }), "nodes.1.config.more", /Unexpected/],
    ["a missing config field", withNode({ config: {} }), "nodes.1.config.template", /Expected/],
    ["an open Mustache section", withNode({ config: { template: "{{#a}}" } }), "nodes.1.config.template", /Mustache/],
    ["a broken JSONPath", withNode({ inputs: { q: "$.input[" } }), "nodes.1.inputs", /JSONPath/],
    [
      "a backtracking function",
      withNode({ inputs: { q: "$.input[?match(@.a, 'x')]" } }),
      "nodes.1.inputs",
      /without match/,
    ],
    [
      "a reference to a later node",
      withNode({ inputs: { q: "$.nodes.out.output" } }),
      "nodes.1.inputs",
      /before this one: out/,
    ],
    ["a reference to everything", withNode({ inputs: { q: "$..secret" } }), "nodes.1.inputs", /below \$\.input/],
    [
      "an edge to nowhere",
      definition({ edges: [...definition().edges, { from: "say", to: "gone" }] }),
      "edges.2.to",
      /gone is none/,
    ],
    [
      "an edge by an unknown handle",
      definition({
        edges: [
          { from: "in", to: "say" },
          { from: "say", to: "out", handle: "yes" },
        ],
      }),
      "edges.1.handle",
      /default, error/,
    ],
    ["a cycle", definition({ edges: [...definition().edges, { from: "say", to: "say" }] }), "nodes.1", /no cycle/],
    [
      "a node that nothing leads to",
      definition({ edges: [{ from: "in", to: "out" }] }),
      "nodes.1",
      /nothing leads to it/,
    ],
    ["a tool of two kinds", withNode({ type: "tool", config: {} }), "nodes.1.config", /either http or mcp/],
    [
      "a bad regular expression",
      withNode({
        type: "condition",
        config: { cases: [{ handle: "a", all: [{ left: "$.input.q", op: "matches", right: "(" }] }] },
      }),
      "nodes.1.config.cases.0",
      /RE2/,
    ],
    [
      "an editable param that is no input",
      withNode({ type: "approval", config: { prompt: "Send?", editable_params: ["text"] } }),
      "nodes.1.config.editable_params",
      /text is none/,
    ],
  ];
  for (const [what, broken, path, message] of refused) {
    it(`refuses ${what}, naming it`, () => {
      assert.match(workflowProblems(broken)[path] ?? "nothing reported", message);
    });
  }

  it("reports every problem at once", () => {
    const broken = definition({
      nodes: [input, { ...say, config: {} }, { ...output, inputs: { a: "$.nodes.gone.output" } }],
    });
    assert.deepEqual(Object.keys(workflowProblems(broken)), ["nodes.1.config.template", "nodes.2.inputs"]);
  });
});

describe("a schema node", () => {
  const check = compileSchemaNode(
    {
      type: "object",
      properties: {
        question: { type: "string", required: true },
        guests: { type: "array", items: { type: "object", properties: { age: { type: "integer", required: true } } } },
        mood: { type: "string", enum: ["calm", "cross"] },
        extra: { type: "any" },
      },
    },
    "input",
  );

  it("lets unknown fields and any value of any pass", () => {
    assert.deepEqual(check({ question: "?", guests: [{ age: 3 }], mood: "calm", extra: [1], more: true }), {});
  });

  it("names each wrong field by its path", () => {
    assert.deepEqual(check({ guests: [{ age: 3 }, {}, { age: "x" }], mood: "odd" }), {
      "input.question": "Expected a value: the field is required",
      "input.guests.1.age": "Expected a value: the field is required",
      "input.guests.2.age": "Expected integer",
      "input.mood": 'Expected one of "calm", "cross"',
    });
  });
});
