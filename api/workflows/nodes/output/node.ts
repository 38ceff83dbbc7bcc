import { defaultHandle } from "#contracts/workflow.ts";
import { config, optional, text } from "../config_schemas.ts";
import { defineNode } from "../node_kind.ts";

/** Its inputs are the run's output. `stream_from` names the node whose words are streamed. */
export const output = defineNode({
  kind: "output",
  words: { name: "Output", icon: "M5 5v14M9 12h11m0 0-4-4m4 4-4 4" },
  config: config({ stream_from: optional(text(64, 1)) }),
  handles: () => [],
  execute: ({ inputs }) => ({ is: "done", output: inputs, handle: defaultHandle }),
});
