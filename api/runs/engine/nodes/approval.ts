import { renderTemplate } from "#workflows/templates.ts";
import type { ExecuteNode, InputAnswer } from "../node_kind.ts";
import { NodeError } from "../node_kind.ts";

const handles = { approve: "approved", reject: "rejected", respond: "approved" } as const;

/** Asks a person to approve the node's inputs, some of which may be changed. */
export const executeApproval: ExecuteNode<"approval"> = ({ config, inputs, answer, budget }) => {
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
