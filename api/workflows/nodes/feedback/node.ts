import type { Static } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { defaultHandle, SchemaNode } from "#contracts/workflow.ts";
import { renderTemplate } from "../../templates.ts";
import { audience, config, longTimeoutS, optional, text } from "../config_schemas.ts";
import { defineNode, type ExecuteNode, NodeError } from "../node_kind.ts";

const FeedbackConfig = config({
  prompt: text(10_000, 1),
  response_schema: optional(SchemaNode),
  audience: optional(audience()),
  timeout_s: optional(longTimeoutS(1)),
  on_timeout: optional(oneOf(["fail", "branch"])),
});

const execute: ExecuteNode<Static<typeof FeedbackConfig>> = ({ config, inputs, answer, budget }) => {
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

/** Asks a person for an answer of any form that fits `response_schema`. */
export const feedback = defineNode({
  kind: "feedback",
  words: { name: "Feedback", icon: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3" },
  config: FeedbackConfig,
  handles: () => [defaultHandle, "expired"],
  execute,
});
