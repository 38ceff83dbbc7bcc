import { type Static, Type } from "@sinclair/typebox";
import { defaultHandle, HttpTool, McpTool } from "#contracts/workflow.ts";
import { config, optional } from "../config_schemas.ts";
import { callHttpTool } from "../http_tool.ts";
import { defineNode, type ExecuteNode, type NodeContext, NodeError } from "../node_kind.ts";

const ToolConfig = config({
  http: optional(HttpTool),
  mcp: optional(McpTool),
  requires_approval: optional(Type.Boolean()),
});
type ToolConfig = Static<typeof ToolConfig>;

const execute: ExecuteNode<ToolConfig> = async (node) => {
  const { config, inputs, answer, nodeRunId } = node;
  const name = toolNameOf(config);
  if (config.requires_approval && !answer) {
    const prompt = `Call ${name}?`;
    const question = {
      type: "approval_request",
      prompt,
      params: inputs,
      editable_params: Object.keys(inputs),
    } as const;
    return { is: "asking", question };
  }
  if (answer && answer.decision !== "approve") {
    return { is: "done", output: { result: null, decision: answer.decision }, handle: "rejected" };
  }
  const toolArguments = answer?.params ?? inputs;
  const startedMs = node.deps.now().getTime();
  const durationMs = () => node.deps.now().getTime() - startedMs;
  await node.emit({ type: "tool.called", data: { call_id: nodeRunId, name, arguments: toolArguments } });
  try {
    const result = await callTool(node, toolArguments);
    await node.emit({ type: "tool.completed", data: { call_id: nodeRunId, result, duration_ms: durationMs() } });
    return { is: "done", output: { result }, handle: defaultHandle };
  } catch (error) {
    const message = error instanceof NodeError ? error.message : "The tool failed";
    await node.emit({
      type: "tool.completed",
      data: { call_id: nodeRunId, error: message, duration_ms: durationMs() },
    });
    throw error;
  }
};

function toolNameOf({ http, mcp }: ToolConfig): string {
  return http?.name ?? mcp?.tool ?? "";
}

function callTool(
  { config, deps, nodeRunId, signal }: NodeContext<ToolConfig>,
  toolArguments: Record<string, unknown>,
) {
  if (config.http) {
    return callHttpTool(config.http, toolArguments, { http: deps.http, idempotencyKey: nodeRunId, signal });
  }
  if (config.mcp) return deps.callMcpTool(config.mcp, toolArguments, signal);
  throw new NodeError("bad_config", "Expected either http or mcp");
}

/** Calls an HTTP or an MCP tool with the node's inputs, after an approval where one is required: `{result}`. */
export const tool = defineNode({
  kind: "tool",
  words: {
    name: "Tool",
    icon: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5l-7 7-3-3 7-7a4 4 0 0 1 1-4",
  },
  config: ToolConfig,
  check({ http, mcp }, { path, report }) {
    if (Boolean(http) === Boolean(mcp)) report(path, "Expected either http or mcp");
  },
  handles: ({ requires_approval }) => (requires_approval ? [defaultHandle, "rejected"] : [defaultHandle]),
  reachesOut: true,
  execute,
});
