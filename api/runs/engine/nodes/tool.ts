import { defaultHandle, type NodeConfig } from "#contracts/workflow.ts";
import { callHttpTool } from "../http_tool.ts";
import { type ExecuteNode, type NodeContext, NodeError } from "../node_kind.ts";

/** Calls an HTTP or an MCP tool with the node's inputs, after an approval where one is required: `{result}`. */
export const executeTool: ExecuteNode<"tool"> = async (node) => {
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

function toolNameOf({ http, mcp }: NodeConfig<"tool">): string {
  return http?.name ?? mcp?.tool ?? "";
}

function callTool({ config, deps, nodeRunId, signal }: NodeContext<"tool">, toolArguments: Record<string, unknown>) {
  if (config.http) {
    return callHttpTool(config.http, toolArguments, { http: deps.http, idempotencyKey: nodeRunId, signal });
  }
  if (config.mcp) return deps.callMcpTool(config.mcp, toolArguments, signal);
  throw new NodeError("bad_config", "Expected either http or mcp");
}
