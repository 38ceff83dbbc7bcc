import { defaultHandle } from "#contracts/workflow.ts";
import { renderTemplate, templateProblem } from "../../templates.ts";
import { config, text } from "../config_schemas.ts";
import { defineNode } from "../node_kind.ts";

/** Text from a Mustache template over the node's inputs: `{text}`. */
export const template = defineNode({
  kind: "template",
  words: { name: "Template", icon: "M6 4h12v16H6zM9 8h6M9 12h6M9 16h3" },
  config: config({ template: text(100_000) }),
  check(config, { path, report }) {
    const problem = templateProblem(config.template);
    if (problem) report(`${path}.template`, problem);
  },
  execute: ({ config, inputs, budget }) => ({
    is: "done",
    output: { text: renderTemplate(config.template, inputs, budget) },
    handle: defaultHandle,
  }),
});
