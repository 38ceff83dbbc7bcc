import { defaultHandle } from "#contracts/workflow.ts";
import { renderTemplate } from "#workflows/templates.ts";
import { type ExecuteNode, NodeError } from "../node_kind.ts";

/** Asks a person for an answer of any form that fits `response_schema`. */
export const executeFeedback: ExecuteNode<"feedback"> = ({ config, inputs, answer, budget }) => {
  if (!answer) {
    return {
      is: "asking",
      question: {
        type: "feedback_request",
        prompt: renderTemplate(config.prompt, inputs, budget),
        params: inputs,
        editable_params: [],
        ...(config.audience && { audience: config.audience }),
        ...(config.response_schema && { response_schema: config.response_schema }),
        ...(config.timeout_s !== undefined && { timeout_s: config.timeout_s }),
      },
    };
  }
  if (answer.decision === "expired") {
    if (config.on_timeout === "branch") return { is: "done", output: { feedback: null }, handle: "expired" };
    throw new NodeError("input_expired", "Nobody answered the feedback request in time");
  }
  const { feedback = null, comment, responded_by } = answer;
  const output = {
    feedback,
    ...(comment !== undefined && { comment }),
    ...(responded_by !== undefined && { responded_by }),
  };
  return { is: "done", output, handle: defaultHandle };
};
