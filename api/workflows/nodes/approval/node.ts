import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { SchemaNode } from "#contracts/workflow.ts";
import { renderTemplate } from "../../templates.ts";
import { audience, config, longTimeoutS, optional, text } from "../config_schemas.ts";
import { defineNode, type ExecuteNode, type InputAnswer, NodeError } from "../node_kind.ts";

const ApprovalConfig = config({
  prompt: text(10_000, 1),
  editable_params: optional(Type.Array(text(200, 1), { maxItems: 100 })),
  params_schema: optional(SchemaNode),
  audience: optional(audience()),
  timeout_s: optional(longTimeoutS(1)),
  on_timeout: optional(oneOf(["reject", "fail", "branch"])),
});

const handles = { approve: "approved", reject: "rejected", respond: "approved" } as const;

const execute: ExecuteNode<Static<typeof ApprovalConfig>> = ({ config, inputs, answer, budget }) => {
  if (!answer) {
    return {
      is: "asking",
      question: {
        type: "approval_request",
        prompt: renderTemplate(config.prompt, inputs, budget),
        params: inputs,
        editable_params: config.editable_params ?? [],
        ...(config.audience && { audience: config.audience }),
        ...(config.params_schema && { params_schema: config.params_schema }),
        ...(config.timeout_s !== undefined && { timeout_s: config.timeout_s }),
      },
    };
  }
  const onTimeout = config.on_timeout ?? "reject";
  if (answer.decision === "expired" && onTimeout === "fail") {
    throw new NodeError("input_expired", "Nobody answered the approval request in time");
  }
  const handle =
    answer.decision === "expired" ? (onTimeout === "branch" ? "expired" : "rejected") : handles[answer.decision];
  return { is: "done", output: outputOf(answer), handle };
};

function outputOf({ decision, params, comment, responded_by }: InputAnswer) {
  return {
    decision,
    params,
    ...(comment !== undefined && { comment }),
    ...(responded_by !== undefined && { responded_by }),
  };
}

/** Asks a person to approve the node's inputs, some of which may be changed. */
export const approval = defineNode({
  kind: "approval",
  words: { name: "Approval", icon: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4" },
  config: ApprovalConfig,
  check({ editable_params }, { node, path, report }) {
    const names = Object.keys(node.inputs ?? {});
    const unknown = editable_params?.find((name) => !names.includes(name));
    if (unknown) report(`${path}.editable_params`, `Expected names of the node's inputs: ${unknown} is none`);
  },
  handles: () => ["approved", "rejected", "expired"],
  execute,
});
