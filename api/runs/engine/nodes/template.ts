import { defaultHandle } from "#contracts/workflow.ts";
import type { ExecuteNode } from "../node_kind.ts";
import { renderTemplate } from "../templates.ts";

/** Text from a Mustache template over the node's inputs: `{text}`. */
export const executeTemplate: ExecuteNode<"template"> = ({ config, inputs }) => ({
  is: "done",
  output: { text: renderTemplate(config.template, inputs) },
  handle: defaultHandle,
});
