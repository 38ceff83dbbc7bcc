/** Carries out what tools ask of the outside world: HTTP requests, MCP servers, our own api. */
import { AddressRefusedError } from "#outbound/address_guard.ts";
import { createGuardedHttp, type GuardedHttp, type GuardedResponse } from "#outbound/guarded_http.ts";
import { HttpToolError, httpToolRequest } from "#outbound/http_tool.ts";
import { McpError } from "#outbound/mcp_client.ts";
import { McpPool } from "#outbound/mcp_pool.ts";
import type { RemoteRequest } from "./remote_tools.ts";
import { resultBytesMax, ToolError, type ToolProgress } from "./tool.ts";

/** What tools may reach. */
export interface ToolWorld {
  /** Development only: users' addresses may be private. */
  allowPrivateAddresses?: boolean;
  /** Our own api, for the tools of the house. */
  api?: { url: string; secret: string };
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

  async function carryOut(request: RemoteRequest, signal: AbortSignal): Promise<unknown> {
    switch (request.is) {
      case "http":
        return callHttp(guarded, request, signal);
      case "mcp_list":
        return mcp.listTools(request.server).catch(inWords);
      case "mcp_call": {
        const { server, name, given, callId } = request;
        return mcp.callTool(server, name, given, signal, callId).catch(inWords);
      }
      case "house":
        return callHouse(own, world.api, request, signal);
    }
  }

  return {
    async run(request, signal) {
      if (running >= requestsMax) throw new ToolError("Too many tools run at the moment: try again later");
      running += 1;
      try {
        return await carryOut(request, signal);
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
  throw cause instanceof McpError ? new ToolError(cause.message, { cause }) : cause;
}

async function callHttp(
  http: GuardedHttp,
  { tool, given, headers }: Extract<RemoteRequest, { is: "http" }>,
  signal: AbortSignal,
): Promise<string> {
  const { url, method, headers: ownHeaders, body } = readable(() => httpToolRequest(tool, given));
  const request = {
    method,
    headers: { ...headers, ...ownHeaders },
    ...(body !== undefined && { body }),
    signal,
    responseBytesMax: resultBytesMax + 1,
  };
  const host = new URL(url).host;
  let answer = await sendOnce(http, url, host, request);
  // Asking again for what only looks something up does no harm.
  if (method === "GET" && (answer instanceof ToolError || answer.status >= 500)) {
    if (!signal.aborted) answer = await sendOnce(http, url, host, request);
  }
  if (answer instanceof ToolError) throw answer;
  const text = answer.body.toString("utf8");
  if (answer.status < 400) return text;
  throw new ToolError(`${host} answered ${answer.status}: ${text.slice(0, errorCharsMax)}`);
}

/** @returns the answer, or why there was none. @throws ToolError where another attempt is in vain */
async function sendOnce(
  http: GuardedHttp,
  url: string,
  host: string,
  request: Parameters<GuardedHttp["send"]>[1],
): Promise<GuardedResponse | ToolError> {
  try {
    return await http.send(url, request);
  } catch (cause) {
    request.signal?.throwIfAborted();
    for (let inner: unknown = cause; inner instanceof Error; inner = inner.cause) {
      if (inner instanceof AddressRefusedError) throw new ToolError(inner.message, { cause });
    }
    return new ToolError(`Cannot reach ${host}`, { cause });
  }
}

function readable<T>(run: () => T): T {
  try {
    return run();
  } catch (cause) {
    if (cause instanceof HttpToolError) throw new ToolError(cause.message, { cause });
    throw cause;
  }
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
  const reply = JSON.parse(answer.body.toString("utf8")) as { result?: unknown; error?: string };
  if (reply.error !== undefined) throw new ToolError(reply.error);
  return reply.result;
}
