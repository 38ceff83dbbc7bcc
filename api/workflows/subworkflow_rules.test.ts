import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkflowDefinition, WorkflowNode } from "#contracts/workflow.ts";
import { subworkflowProblems, type UsedVersion, usedVersionIds } from "./subworkflow_rules.ts";

const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** A chain of an input, `nodes` side by side and an output. */
const definition = (...nodes: WorkflowNode[]): WorkflowDefinition => ({
  schema_version: 1,
  nodes: [{ id: "in", type: "input" }, ...nodes, { id: "out", type: "output" }],
  edges: nodes.flatMap((node) => [
    { from: "in", to: node.id },
    { from: node.id, to: "out" },
  ]),
});

/** Version n is of workflow n + 100. */
const sub = (n: number, change: Partial<WorkflowNode> = {}): WorkflowNode => ({
  id: `sub_${n}`,
  type: "subworkflow",
  config: { workflow_id: id(n + 100), version_id: id(n) },
  ...change,
});
const map = (...nodes: WorkflowNode[]): WorkflowNode => ({
  id: `map_${nodes[0]?.id}`,
  type: "map",
  config: { items: [1], body: { nodes: [...nodes, { id: `out_${nodes[0]?.id}`, type: "output" }], edges: [] } },
});

function versions(...definitions: WorkflowDefinition[]): ReadonlyMap<string, UsedVersion> {
  return new Map(
    definitions.map((one, n) => [id(n), { id: id(n), workflow_id: id(n + 100), definition: one }] as const),
  );
}

describe("a subworkflow", () => {
  const plain = definition({ id: "say", type: "template", config: { template: "" } });

  it("is accepted where its version is the project's, also inside of a map", () => {
    assert.deepEqual(subworkflowProblems(definition(sub(0), map(sub(0))), id(7), versions(plain)), {});
    assert.deepEqual(usedVersionIds(definition(sub(0), map(sub(1), sub(0)))), [id(0), id(1)]);
  });

  it("is refused where the project has no such version, or where it is another workflow's", () => {
    const foreign = subworkflowProblems(definition(sub(1), map(sub(2))), undefined, versions(plain));
    assert.deepEqual(Object.keys(foreign), [
      "nodes.1.config.version_id",
      "nodes.2.config.body.nodes.0.config.version_id",
    ]);
    const mixed = sub(0, { config: { workflow_id: id(5), version_id: id(0) } });
    const problems = subworkflowProblems(definition(mixed), undefined, versions(plain));
    assert.match(problems["nodes.1.config.workflow_id"] ?? "", /that the version is of/);
  });

  it("is refused where a workflow would be inside of itself, at any distance", () => {
    const known = versions(plain, definition(sub(0)), definition(map(sub(1))));
    for (const own of [id(100), id(101), id(102)]) {
      const problems = subworkflowProblems(definition(sub(2)), own, known);
      assert.match(problems["nodes.1.config.workflow_id"] ?? "", /no cycle/);
    }
    assert.deepEqual(subworkflowProblems(definition(sub(2)), id(103), known), {});
  });

  it("is refused where it stands too deep, maps counted", () => {
    const known = versions(plain, definition(sub(0)), definition(map(sub(1))), definition(sub(2)));
    assert.deepEqual(subworkflowProblems(definition(sub(3)), undefined, known), {});
    const deeper = subworkflowProblems(definition(map(sub(3))), undefined, known);
    assert.match(deeper["nodes.1.config.body.nodes.0.config.version_id"] ?? "", /at most 5/);
  });

  it("is refused without an input that its workflow requires", () => {
    const asking = {
      ...plain,
      input: {
        type: "object" as const,
        properties: { question: { type: "string" as const, required: true }, mood: { type: "string" as const } },
      },
    };
    const problems = subworkflowProblems(definition(sub(0)), undefined, versions(asking));
    assert.match(problems["nodes.1.inputs"] ?? "", /requires: question$/);
    const given = definition(sub(0, { inputs: { question: "$.input.q" } }));
    assert.deepEqual(subworkflowProblems(given, undefined, versions(asking)), {});
  });
});
