import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
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
  const body = {
    nodes: [
      { id: "greet", type: "template", config: { template: "Dear {{g}}" }, inputs: { g: "$.item.name" } },
      {
        id: "one",
        type: "output",
        inputs: { text: "$.nodes.greet.output.text", n: "$.index", q: "$.nodes.pre.output" },
      },
    ],
    edges: [{ from: "greet", to: "one" }],
  };
  /** A chain with a map over the input's guests, and a node before it. */
  const mapping = (config: Record<string, unknown> = {}, change: Record<string, unknown> = {}) =>
    definition({
      nodes: [
        input,
        { id: "pre", type: "template", config: { template: "" } },
        { id: "each", type: "map", config: { items: "$.input.guests", body, ...config }, ...change },
        { id: "out", type: "output", inputs: { all: "$.nodes.each.output.items" } },
      ],
      edges: [
        { from: "in", to: "pre" },
        { from: "pre", to: "each" },
        { from: "each", to: "out" },
      ],
    });
  const withBody = (change: Record<string, unknown>) => mapping({ body: { ...body, ...change } });
  const [greet, one] = body.nodes;
  const nested = (depth: number): Record<string, unknown> => ({
    items: "$.input.guests",
    body:
      depth === 0
        ? { nodes: [{ id: "last", type: "output" }], edges: [] }
        : {
            nodes: [
              { id: `map_${depth}`, type: "map", config: nested(depth - 1) },
              { id: `out_${depth}`, type: "output" },
            ],
            edges: [{ from: `map_${depth}`, to: `out_${depth}` }],
          },
  });

  it("accepts a map whose body refers to its item, and to what comes before the map", () => {
    assert.deepEqual(workflowProblems(mapping()), {});
    assert.deepEqual(workflowProblems(mapping(nested(4))), {});
  });

  const at = "nodes.2.config.body";
  refused.push(
    ["$.item outside of a map", withNode({ inputs: { q: "$.item" } }), "nodes.1.inputs", /below \$\.input/],
    ["a map without items", withNode({ type: "map", config: { body } }), "nodes.1.config.items", /required/i],
    ["a map without a body", mapping({ body: undefined }), "nodes.2.config.body", /object/],
    ["more at once than a worker bears", mapping({ concurrency: 21 }), "nodes.2.config.concurrency", /20/],
    ["more items than a map takes", mapping({ max_items: 1001 }), "nodes.2.config.max_items", /1000/],
    ["a retry of a map", mapping({}, { retry: { max_attempts: 2 } }), "nodes.2.retry", /nodes inside/],
    ["items after the map", mapping({ items: "$.nodes.out.output" }), "nodes.2.inputs", /before this one: out/],
    [
      "an input in a map",
      withBody({ nodes: [...body.nodes, { id: "in2", type: "input" }] }),
      `${at}.nodes`,
      /\$\.item/,
    ],
    ["a body without an output", withBody({ nodes: [greet], edges: [] }), `${at}.nodes`, /output node/],
    [
      "an id of the graph around",
      withBody({ nodes: [{ ...greet, id: "pre" }, one] }),
      `${at}.nodes.0.id`,
      /pre is taken/,
    ],
    [
      "a kind that is none, in a map",
      withBody({ nodes: [{ ...greet, type: "x" }, one] }),
      `${at}.nodes.0.type`,
      /one of/,
    ],
    ["a config in a map", withBody({ nodes: [{ ...greet, config: {} }, one] }), `${at}.nodes.0.config.template`, /./],
    ["an edge out of a map", withBody({ edges: [{ from: "greet", to: "out" }] }), `${at}.edges.0.to`, /out is none/],
    [
      "a cycle in a map",
      withBody({ edges: [...body.edges, { from: "greet", to: "greet" }] }),
      `${at}.nodes.0`,
      /no cycle/,
    ],
    [
      "a reference past the map",
      withBody({ nodes: [{ ...greet, inputs: { g: "$.nodes.out.output" } }, one] }),
      `${at}.nodes.0.inputs`,
      /before this one/,
    ],
    [
      "maps too deep in each other",
      mapping(nested(5)),
      [at, ...[5, 4, 3, 2, 1].map(() => "nodes.0.config.body")].join("."),
      /at most 5 maps/,
    ],
    [
      "a subworkflow without a version",
      withNode({ type: "subworkflow", config: { workflow_id: crypto.randomUUID() } }),
      "nodes.1.config.version_id",
      /required/i,
    ],
  );
  refused.push(
    [
      "two descents in one reference, with the position of the second",
      withNode({ inputs: { q: "$.input['..']..a[?@..b]" } }),
      "nodes.1.inputs",
      /one descendant segment.* second one at position 19/,
    ],
    [
      "a pattern that is large once it is written out",
      withNode({
        type: "condition",
        config: { cases: [{ handle: "a", all: [{ left: "$.input.q", op: "matches", right: "((a{20}){20}){20}" }] }] },
      }),
      "nodes.1.config.cases.0",
      /smaller repeat counts/,
    ],
    [
      "sections too deep in each other",
      withNode({ config: { template: `${"{{#a}}".repeat(21)}${"{{/a}}".repeat(21)}` } }),
      "nodes.1.config.template",
      /at most 20 sections/,
    ],
    [
      "more searching references than parsing them is worth",
      withNode({
        inputs: Object.fromEntries(
          Array.from({ length: 11 }, (_, i) => [`q${i}`, `$.input[?@.a==${"1".repeat(1900)}]`]),
        ),
      }),
      "nodes",
      /at most 20000 characters of references/,
    ],
  );
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
