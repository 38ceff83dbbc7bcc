import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, it } from "node:test";
import { nodeKinds } from "./nodes/catalogue.ts";
import { workflowProblems } from "./workflow_rules.ts";

describe("node kinds", () => {
  it("are a folder each, and a folder is a kind", () => {
    const folders = readdirSync(new URL("./nodes/", import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    assert.deepEqual(folders.sort(), nodeKinds.map(({ kind }) => kind).sort());
  });

  it("have a name and an icon of strokes, each its own", () => {
    for (const { words } of nodeKinds) assert.match(words.icon, /^M[\dMmLlHhVvCcAaZz .-]+$/);
    for (const word of ["name", "icon"] as const) {
      assert.equal(new Set(nodeKinds.map(({ words }) => words[word])).size, nodeKinds.length, word);
    }
  });

  it("refuse any config without falling over, whatever its fields hold", () => {
    const wrongs = [
      undefined,
      {},
      { cases: "x", body: 5, map: null, messages: {}, items: [], http: 7, stream_from: 1 },
    ];
    for (const { kind } of nodeKinds) {
      for (const config of wrongs) {
        const definition = {
          schema_version: 1 as const,
          nodes: [
            { id: "in", type: "input" },
            { id: "it", type: kind, ...(config && { config }) },
            { id: "out", type: "output" },
          ],
          edges: [
            { from: "in", to: "it" },
            { from: "it", to: "out", handle: "any" },
          ],
        };
        const problems = workflowProblems(definition);
        assert.ok(Object.keys(problems).length > 0, `${kind} ${JSON.stringify(config)}`);
      }
    }
  });
});
