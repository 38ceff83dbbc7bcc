/** All node kinds that are built, by name: a new kind is a file in `nodes/` and a line here. */
import type { NodeKind } from "#contracts/workflow.ts";
import type { ExecuteNode } from "./node_kind.ts";
import { executeApproval } from "./nodes/approval.ts";
import { executeCondition } from "./nodes/condition.ts";
import { executeDelay } from "./nodes/delay.ts";
import { executeFeedback } from "./nodes/feedback.ts";
import { executeHttp } from "./nodes/http.ts";
import { executeInput } from "./nodes/input.ts";
import { executeLlm } from "./nodes/llm.ts";
import { executeMap } from "./nodes/map.ts";
import { executeOutput } from "./nodes/output.ts";
import { executeSubworkflow } from "./nodes/subworkflow.ts";
import { executeTemplate } from "./nodes/template.ts";
import { executeTool } from "./nodes/tool.ts";
import { executeTransform } from "./nodes/transform.ts";

export const executors: { [K in NodeKind]: ExecuteNode<K> } = {
  input: executeInput,
  output: executeOutput,
  llm: executeLlm,
  http: executeHttp,
  tool: executeTool,
  template: executeTemplate,
  transform: executeTransform,
  condition: executeCondition,
  approval: executeApproval,
  feedback: executeFeedback,
  delay: executeDelay,
  map: executeMap,
  subworkflow: executeSubworkflow,
};
