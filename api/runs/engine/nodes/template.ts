import { defaultHandle } from "#contracts/workflow.ts";
import { renderTemplate } from "#workflows/templates.ts";
import type { ExecuteNode } from "../node_kind.ts";

/** Text from a Mustache template over the node's inputs: `{text}`. */
export const executeTemplate: ExecuteNode<"template"> = ({ config, inputs, budget }) => ({
  is: "done",
  output: { text: renderTemplate(config.template, inputs, budget) },
  handle: defaultHandle,
});
