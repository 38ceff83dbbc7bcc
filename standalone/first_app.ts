/**
 * The app that the first start deploys: a guest's question is answered by rules, word by word. An
 * answer that binds the house, and one that nobody has, waits for a person before it is sent.
 */
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { frontDeskRules } from "./first_agents.ts";

const noAnswer = "Thank you for asking. A colleague will look into this and write to you today.";

/** Money, favours and promises: what a house wants to have seen before it goes out. */
const binding = "(?i)\\b(euros?|free of charge|late check-out|colleague)\\b";

export const frontDeskWorkflow: WorkflowDefinition = {
  schema_version: 1,
  input: {
    type: "object",
    properties: { question: { type: "string", required: true, description: "What the guest wants to know" } },
  },
  nodes: [
    { id: "guest", type: "input", name: "The guest asks" },
    {
      id: "answer",
      type: "llm",
      name: "Draft an answer",
      config: {
        model: "rules",
        // A run has one turn: rules that ask back have no place here.
        options: { rules: frontDeskRules.filter((rule) => !("slots" in rule)), fallback: noAnswer, tokens_per_s: 12 },
        messages: [
          { role: "system", template: "You are the front desk of a small hotel. Answer briefly and kindly." },
          { role: "user", template: "{{question}}" },
        ],
      },
      inputs: { question: "$.input.question" },
    },
    {
      id: "check",
      type: "condition",
      name: "Does it bind the house?",
      config: {
        cases: [{ handle: "binding", any: [{ left: "$.nodes.answer.output.text", op: "matches", right: binding }] }],
      },
    },
    {
      id: "approve",
      type: "approval",
      name: "A person looks at it",
      config: {
        prompt: "Send this answer to the guest?",
        editable_params: ["text"],
        params_schema: { type: "object", properties: { text: { type: "string", required: true } } },
        timeout_s: 86_400,
        on_timeout: "reject",
      },
      inputs: { question: "$.input.question", text: "$.nodes.answer.output.text" },
    },
    {
      id: "approved",
      type: "output",
      name: "Send what was approved",
      inputs: { answer: "$.nodes.approve.output.params.text", approved: true },
    },
    {
      id: "rejected",
      type: "output",
      name: "Send a word of thanks",
      inputs: { answer: noAnswer, approved: false },
    },
    {
      id: "direct",
      type: "output",
      name: "Send it at once",
      inputs: { answer: "$.nodes.answer.output.text" },
    },
  ],
  edges: [
    { from: "guest", to: "answer" },
    { from: "answer", to: "check" },
    { from: "check", handle: "binding", to: "approve" },
    { from: "check", handle: "else", to: "direct" },
    { from: "approve", handle: "approved", to: "approved" },
    { from: "approve", handle: "rejected", to: "rejected" },
  ],
};
