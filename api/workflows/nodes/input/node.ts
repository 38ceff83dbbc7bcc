import { defaultHandle } from "#contracts/workflow.ts";
import { config } from "../config_schemas.ts";
import { defineNode } from "../node_kind.ts";

/** Where the run begins: its output is the run's input, which was checked when the run was created. */
export const input = defineNode({
  kind: "input",
  words: { name: "Input", icon: "M4 12h11m0 0-4-4m4 4-4 4M19 5v14" },
  config: config({}),
  execute: ({ context }) => ({ is: "done", output: context.input, handle: defaultHandle }),
});
