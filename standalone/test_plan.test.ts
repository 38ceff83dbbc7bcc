import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planProcesses } from "./test_plan.ts";

const files = [
  "api/app.test.ts",
  "api/bus/bus.test.ts",
  ...Array.from({ length: 9 }, (_, i) => `media/m${i}.test.ts`),
  "standalone/bootstrap.test.ts",
  "test/crash/a.test.ts",
  "test/crash/b.test.ts",
  "test/house/borders.test.ts",
  "test/house/recipes.test.ts",
  "test/roles/standalone_start.test.ts",
];

describe("the processes of a test run", () => {
  const processes = planProcesses(files);

  it("run each file once", () => {
    assert.deepEqual(processes.flat().sort(), [...files].sort());
  });

  it("start with what takes longest, each file by itself", () => {
    assert.deepEqual(processes.slice(0, 4), [
      ["test/house/recipes.test.ts"],
      ["test/roles/standalone_start.test.ts"],
      ["test/crash/a.test.ts"],
      ["test/crash/b.test.ts"],
    ]);
  });

  it("are shared by neighbours, so many as one can still look through", () => {
    assert.deepEqual(
      processes.slice(4).map((shared) => shared.map((file) => file.slice(0, file.lastIndexOf("/")))),
      [["api", "api/bus"], Array(5).fill("media"), Array(4).fill("media"), ["standalone"], ["test/house"]],
    );
  });
});
