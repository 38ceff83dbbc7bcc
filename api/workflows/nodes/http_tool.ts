/** Calls an HTTP tool, the shape that voice agents and workflows share: params go where `in` says. */
import { argumentProblem, parametersOf } from "#contracts/tool_params.ts";
import type { HttpTool } from "#contracts/workflow.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import { HttpToolError, type HttpToolRequest, httpToolRequest } from "#outbound/http_tool.ts";
import type { ToolSpec } from "#providers/language_model.ts";
import { sendForNode } from "./http_answer.ts";
import { NodeError } from "./node_kind.ts";

const timeoutSDefault = 10;

/** The tool as a model sees it. */
export function toolSpecOf(tool: HttpTool): ToolSpec {
  return {
    name: tool.name,
    description: tool.description ?? "",
    parameters: parametersOf(tool.params ?? []),
  };
}

/** @returns the body of the tool's answer. @throws NodeError */
export async function callHttpTool(
  tool: HttpTool,
  toolArguments: Record<string, unknown>,
  { http, idempotencyKey, signal }: { http: GuardedHttp; idempotencyKey: string; signal: AbortSignal },
): Promise<unknown> {
  const params = tool.params ?? [];
  const problem = argumentProblem(params, toolArguments);
  if (problem) throw new NodeError("bad_arguments", `Cannot call ${tool.name}: ${problem}`);
  const { url, ...request } = readable(tool, toolArguments);
  const answer = await sendForNode(http, url, {
    ...request,
    headers: { "idempotency-key": idempotencyKey, ...request.headers },
    signal: AbortSignal.any([signal, AbortSignal.timeout((tool.timeout_s ?? timeoutSDefault) * 1000)]),
  });
  return answer.body;
}

/** @throws NodeError */
function readable(tool: HttpTool, toolArguments: Record<string, unknown>): HttpToolRequest {
  try {
    return httpToolRequest(tool, toolArguments);
  } catch (cause) {
    if (cause instanceof HttpToolError) throw new NodeError("bad_arguments", cause.message, { cause });
    throw cause;
  }
}
