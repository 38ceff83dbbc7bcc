/** Carries out what tools ask of the outside world: HTTP requests, MCP servers, our own api. */
import { createGuardedHttp, type GuardedHttp, type GuardedResponse } from "#outbound/guarded_http.ts";
import { HttpToolError } from "#outbound/http_tool.ts";
import { callHttpTool } from "#outbound/http_tool_call.ts";
import { McpError } from "#outbound/mcp_client.ts";
import { McpPool } from "#outbound/mcp_pool.ts";
import { withoutSecrets } from "#outbound/without_secrets.ts";
import { type OwnApi, runApp } from "./app_runs.ts";
import type { RemoteRequest } from "./remote_tools.ts";
import { resultBytesMax, ToolError, type ToolProgress, textOf } from "./tool.ts";

/** What tools may reach. */
export interface ToolWorld {
  /** Development only: users' addresses may be private. */
  allowPrivateAddresses?: boolean;
  /** Our own api, for the tools of the house and for apps. */
  api?: OwnApi;
}

export interface ToolRunner {
  /** Gives up when `signal` is aborted. @throws ToolError in words for the model */
  run(request: RemoteRequest, signal: AbortSignal, progress: (update: ToolProgress) => void): Promise<unknown>;
  close(): Promise<void>;
}

/** An answer's text as far as a model is shown it when it is an error. */
const errorCharsMax = 2000;
/** Requests at once, of all calls; more are refused. */
const requestsMax = 512;

export function createToolRunner(world: ToolWorld): ToolRunner {
  // The tool's own time-out ends a slow answer.
  const timeouts = { headersTimeoutMs: 0, bodyTimeoutMs: 0 };
  const guarded = createGuardedHttp({ allowPrivateAddresses: world.allowPrivateAddresses ?? false, ...timeouts });
  const own = createGuardedHttp({ allowPrivateAddresses: true, ...timeouts });
  const mcp = new McpPool(guarded);
  let running = 0;

  async function carryOut(
    request: RemoteRequest,
    signal: AbortSignal,
    progress: (update: ToolProgress) => void,
  ): Promise<unknown> {
    switch (request.is) {
      case "http":
        return callHttp(guarded, request, signal);
      case "mcp_list":
        return mcp.listTools(request.server).catch(inWords);
      case "mcp_call":
        return callMcp(mcp, request, signal);
      case "app":
        return runApp(own, world.api, request, signal, progress);
      case "house":
        return callHouse(own, world.api, request, signal);
    }
  }

  return {
    async run(request, signal, progress) {
      if (running >= requestsMax) throw new ToolError("Too many tools run at the moment: try again later");
      running += 1;
      try {
        return await carryOut(request, signal, progress);
      } finally {
        running -= 1;
      }
    },
    async close() {
      await mcp.close();
      await Promise.all([guarded.close(), own.close()]);
    },
  };
}

function inWords(cause: unknown): never {
  const isForTheModel = cause instanceof McpError || cause instanceof HttpToolError;
  throw isForTheModel ? new ToolError(cause.message, { cause }) : cause;
}

/** As HTTP tools, without the values of the server's headers, should it repeat them. */
async function callMcp(
  mcp: McpPool,
  { server, name, given, callId }: Extract<RemoteRequest, { is: "mcp_call" }>,
  signal: AbortSignal,
): Promise<string> {
  const secrets = Object.values(server.headers);
  try {
    return withoutSecrets(textOf(await mcp.callTool(server, name, given, signal, callId)), secrets);
  } catch (cause) {
    if (!(cause instanceof McpError)) throw cause;
    throw new ToolError(withoutSecrets(cause.message, secrets), { cause });
  }
}

async function callHttp(
  http: GuardedHttp,
  { tool, given, headers }: Extract<RemoteRequest, { is: "http" }>,
  signal: AbortSignal,
): Promise<string> {
  const call = { tool, given, headers, signal, answerBytesMax: resultBytesMax + 1 };
  const { status, host, text } = await callHttpTool(http, call).catch(inWords);
  if (status < 400) return text;
  throw new ToolError(`${host} answered ${status}: ${text.slice(0, errorCharsMax)}`);
}

/** The tools of the house answer `{result}` or `{error}`, both for the model. */
async function callHouse(
  http: GuardedHttp,
  api: ToolWorld["api"],
  { callId, toolCallId, name, given }: Extract<RemoteRequest, { is: "house" }>,
  signal: AbortSignal,
): Promise<unknown> {
  if (!api) throw new ToolError(`Tool ${name} is not available here`);
  let answer: GuardedResponse;
  try {
    answer = await http.send(`${api.url}/internal/calls/${callId}/tools/${name}`, {
      method: "POST",
      headers: { authorization: `Bearer ${api.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ tool_call_id: toolCallId, arguments: given }),
      signal,
      responseBytesMax: 4 * resultBytesMax,
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new ToolError("The house's own service cannot be reached at the moment", { cause });
  }
  if (answer.status !== 200) throw new ToolError(`The house's own service answered ${answer.status}`);
  if (answer.truncated) throw new ToolError("The house's own service answered something too large");
  const reply = JSON.parse(answer.body.toString("utf8")) as { result?: unknown; error?: string };
  if (reply.error !== undefined) throw new ToolError(reply.error);
  return reply.result;
}
