import { defaultHandle } from "#contracts/workflow.ts";
import type { ExecuteNode } from "../node_kind.ts";

/** Its inputs are the run's output. */
export const executeOutput: ExecuteNode<"output"> = ({ inputs }) => ({
  is: "done",
  output: inputs,
  handle: defaultHandle,
});
