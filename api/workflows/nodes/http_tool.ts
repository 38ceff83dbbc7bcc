/** Calls an HTTP tool, the shape that voice agents and workflows share: params go where `in` says. */
import { argumentProblem, parametersOf } from "#contracts/tool_params.ts";
import type { HttpTool } from "#contracts/workflow.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
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
  const given = params.filter(({ name }) => toolArguments[name] !== undefined);
  const sentIn = (place: "path" | "query" | "body" | "header") =>
    given
      .filter((param) => (param.in ?? "body") === place)
      .map(({ name }): [string, unknown] => [name, toolArguments[name]]);

  let target = tool.url;
  for (const [name, value] of sentIn("path"))
    target = target.replaceAll(`{${name}}`, encodeURIComponent(textOf(value)));
  if (!URL.canParse(target)) throw new NodeError("bad_url", `Cannot call ${tool.name}: ${target} is no URL`);
  const url = new URL(target);
  for (const [name, value] of sentIn("query")) url.searchParams.append(name, textOf(value));
  const body = sentIn("body");
  const method = tool.method ?? "GET";
  const sendsBody = body.length > 0 && method !== "GET";
  if (!sendsBody) for (const [name, value] of body) url.searchParams.append(name, textOf(value));
  const answer = await sendForNode(http, url.href, {
    method,
    headers: {
      "idempotency-key": idempotencyKey,
      ...(sendsBody && { "content-type": "application/json" }),
      ...Object.fromEntries((tool.headers ?? []).map(({ key, value }) => [key.toLowerCase(), value])),
      ...Object.fromEntries(sentIn("header").map(([name, value]) => [name.toLowerCase(), textOf(value)])),
    },
    ...(sendsBody && { body: JSON.stringify(Object.fromEntries(body)) }),
    signal: AbortSignal.any([signal, AbortSignal.timeout((tool.timeout_s ?? timeoutSDefault) * 1000)]),
  });
  return answer.body;
}

function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
