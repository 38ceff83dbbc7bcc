import { defaultHandle } from "#contracts/workflow.ts";
import type { ExecuteNode } from "../node_kind.ts";

/** Where the run begins: its output is the run's input, which was checked when the run was created. */
export const executeInput: ExecuteNode<"input"> = ({ context }) => ({
  is: "done",
  output: context.input,
  handle: defaultHandle,
});
