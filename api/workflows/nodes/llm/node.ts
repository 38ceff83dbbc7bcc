/**
 * A language model's reply to rendered messages: text streamed as it comes, tools called in between,
 * structured output checked. Output: `{text}`, and `json` where an `output_schema` is set.
 */

import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { addUsage, type RunUsage } from "#contracts/run_event.ts";
import { defaultHandle, HttpTool, SchemaNode } from "#contracts/workflow.ts";
import { builtInProviders } from "#providers/catalogue.ts";
import { checkModelSettings } from "#providers/check_settings.ts";
import type { HistoryItem, LlmChunk, LlmRequest } from "#providers/language_model.ts";
import { jsonSchemaOf, schemaProblems } from "../../schema_node.ts";
import { renderTemplate, templateProblem } from "../../templates.ts";
import { config, optional, text, uuid } from "../config_schemas.ts";
import { callHttpTool, toolSpecOf } from "../http_tool.ts";
import {
  defineNode,
  type ExecuteNode,
  type NodeContext,
  NodeError,
  type NodeReport,
  type OpenedModel,
} from "../node_kind.ts";

const LlmConfig = config({
  connection_id: optional(uuid()),
  /** A vendor's model, or without a connection a built-in one. */
  model: text(200, 1),
  messages: Type.Array(config({ role: oneOf(["system", "user", "assistant"]), template: text(100_000) }), {
    minItems: 1,
    maxItems: 100,
  }),
  options: optional(Type.Record(text(100, 1), Type.Unknown())),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  max_tokens: optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  stream: optional(Type.Boolean()),
  output_schema: optional(Type.Union([SchemaNode, Type.Null()])),
  tools: optional(Type.Array(HttpTool, { maxItems: 64 })),
  max_tool_steps: optional(Type.Integer({ minimum: 1, maximum: 20 })),
});
type LlmConfig = Static<typeof LlmConfig>;

const toolStepsDefault = 3;
type ToolCall = Extract<LlmChunk, { kind: "tool_call" }>;

const execute: ExecuteNode<LlmConfig> = async (node) => {
  const { config, deps } = node;
  const opened = await deps.openModel(config);
  try {
    return await converse(node, opened);
  } finally {
    opened.model.close();
  }
};

async function converse(node: NodeContext<LlmConfig>, opened: OpenedModel) {
  const { config, inputs, budget, signal } = node;
  const rendered = config.messages.map(({ role, template }) => ({
    role,
    text: renderTemplate(template, inputs, budget),
  }));
  const history: HistoryItem[] = rendered
    .filter(({ role }) => role !== "system")
    .map(({ role, text }) => ({ role: role === "assistant" ? "agent" : "user", text }));
  const request: Omit<LlmRequest, "history"> = {
    instructions: rendered
      .filter(({ role }) => role === "system")
      .map(({ text }) => text)
      .join("\n\n"),
    turnIndex: history.filter(({ role }) => role === "user").length - 1,
    inputKind: "text",
    unrecognized: false,
    tools: (config.tools ?? []).map(toolSpecOf),
    ...(config.output_schema && { outputSchema: jsonSchemaOf(config.output_schema as SchemaNode) }),
  };
  for (let step = 0; ; step += 1) {
    const { text, calls } = await askModel(node, opened, { ...request, history }, step);
    signal.throwIfAborted();
    if (calls.length === 0) return { is: "done", output: outputOf(node, text), handle: defaultHandle } as const;
    if (step >= (config.max_tool_steps ?? toolStepsDefault)) {
      throw new NodeError("too_many_tool_steps", "The model called tools for more steps than max_tool_steps allows");
    }
    if (text) history.push({ role: "agent", text });
    for (const call of calls) history.push(await answerCall(node, call));
  }
}

/** One request, and the event that tells of it. */
async function askModel(
  node: NodeContext<LlmConfig>,
  { provider, model, costOf, currency }: OpenedModel,
  request: LlmRequest,
  index: number,
) {
  const { config, deps, signal } = node;
  const startedMs = deps.now().getTime();
  const usage: RunUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  let firstTokenMs: number | undefined;
  let isReported = false;
  const completed = (outcome: { error?: string }) =>
    node.emit({
      type: "model.completed",
      data: {
        index,
        provider,
        model: config.model,
        usage,
        cost: isReported ? costOf(usage) : null,
        currency,
        ...outcome,
        ...(firstTokenMs !== undefined && { first_token_ms: firstTokenMs }),
        duration_ms: deps.now().getTime() - startedMs,
      },
    });
  try {
    const reply = await readReply(node, model.reply(request, signal), index, usage, (chunk) => {
      if (chunk.kind === "usage") isReported = true;
      firstTokenMs ??= deps.now().getTime() - startedMs;
    });
    await completed({});
    return reply;
  } catch (error) {
    if (!signal.aborted) await completed({ error: error instanceof NodeError ? error.message : "The model failed" });
    throw error;
  }
}

async function readReply(
  node: NodeContext<LlmConfig>,
  reply: AsyncIterable<LlmChunk>,
  index: number,
  usage: RunUsage,
  see: (chunk: LlmChunk) => void,
) {
  const calls: ToolCall[] = [];
  let text = "";
  for await (const chunk of reply) {
    see(chunk);
    if (chunk.kind === "text" || chunk.kind === "audio") {
      text += chunk.text;
      if (node.streams && chunk.text) {
        await node.emit({ type: "content.delta", data: { index, text: chunk.text, channel: "output" } });
      }
    } else if (chunk.kind === "tool_call") {
      calls.push(chunk);
    } else {
      const { prompt, completion, cached } = chunk;
      const total_tokens = prompt + completion;
      addUsage(usage, { prompt_tokens: prompt, completion_tokens: completion, total_tokens, cached_tokens: cached });
    }
  }
  if (text) await node.emit({ type: "content.completed", data: { index, text } });
  return { text, calls };
}

/** A failed tool is the model's to deal with: it hears the error. */
async function answerCall(node: NodeContext<LlmConfig>, call: ToolCall): Promise<HistoryItem> {
  const { deps, nodeRunId, signal } = node;
  const startedMs = deps.now().getTime();
  const answered = { call_id: call.id };
  await node.emit({ type: "tool.called", data: { ...answered, name: call.name, arguments: call.arguments } });
  const completed = (outcome: { result?: unknown; error?: string }) =>
    node.emit({
      type: "tool.completed",
      data: { ...answered, ...outcome, duration_ms: deps.now().getTime() - startedMs },
    });
  const item = { role: "tool", call: { id: call.id, name: call.name, arguments: call.arguments } } as const;
  try {
    const tool = node.config.tools?.find(({ name }) => name === call.name);
    if (!tool) throw new NodeError("unknown_tool", `There is no tool ${call.name}`);
    if (call.problem) throw new NodeError("bad_arguments", `Cannot call ${call.name}: ${call.problem}`);
    const idempotencyKey = `${nodeRunId}:${call.id}`;
    const result = await callHttpTool(tool, call.arguments, { http: deps.http, idempotencyKey, signal });
    await completed({ result });
    return { ...item, text: typeof result === "string" ? result : JSON.stringify(result) };
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof NodeError ? error.message : "The tool failed";
    await completed({ error: message });
    return { ...item, text: message, isError: true };
  }
}

function outputOf({ config, budget }: NodeContext<LlmConfig>, text: string) {
  if (!config.output_schema) return { text };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new NodeError("bad_output", "The model's reply is not JSON", { cause, retryable: true });
  }
  const [problem] = Object.entries(schemaProblems(config.output_schema as SchemaNode, json, "output", budget));
  if (problem) throw new NodeError("bad_output", `${problem[0]}: ${problem[1]}`, { retryable: true });
  return { text, json };
}

function check({ messages, model, connection_id, options }: LlmConfig, { path, report }: NodeReport): void {
  for (const [index, { template }] of messages.entries()) {
    const problem = templateProblem(template);
    if (problem) report(`${path}.messages.${index}.template`, problem);
  }
  if (connection_id === undefined) checkBuiltInModel(model, options ?? {}, path, report);
  else if (options) report(`${path}.options`, "Expected no options with a connection_id: they are a built-in model's");
}

/** A model without a connection is one of ours. */
function checkBuiltInModel(
  model: string,
  options: Record<string, unknown>,
  path: string,
  report: NodeReport["report"],
): void {
  const names = builtInProviders("llm").map(({ name }) => name);
  if (!names.includes(model)) {
    report(`${path}.model`, `Expected one of ${names.join(", ")} without a connection_id`);
    return;
  }
  for (const problem of checkModelSettings("llm", { provider: model, options })) {
    report(`${path}.${problem.path.replace(/^llm\./, "")}`, problem.message);
  }
}

export const llm = defineNode({
  kind: "llm",
  words: { name: "Model", icon: "M4 6h16v10h-9l-4 4v-4H4zM8 10h8M8 13h5" },
  config: LlmConfig,
  check,
  reachesOut: true,
  execute,
});
