/** Tools that are HTTP requests, as a call has them; they are made on the tools' thread. */
import type { Credentials } from "#contracts/internal_calls.ts";
import { argumentProblem, parametersOf } from "#contracts/tool_params.ts";
import type { HttpTool } from "#contracts/voice_agent.ts";
import { bearerOf } from "./bearer.ts";
import { mannersOf } from "./manners.ts";
import type { RemoteTools } from "./remote_tools.ts";
import { type Tool, textOf, toolTimeoutMs } from "./tool.ts";

/** What an HTTP tool needs of its call. */
export interface HttpToolHost {
  callId: string;
  credentials: Credentials;
  remote: RemoteTools;
}

export function httpToolOf(config: HttpTool, { callId, credentials, remote }: HttpToolHost): Tool {
  const { name, description = "", method = "GET", url, headers = [], params = [], long_running = false } = config;
  return {
    spec: { name, description, parameters: parametersOf(params) },
    source: "http",
    policy: {
      timeoutMs: toolTimeoutMs(config),
      longRunning: long_running,
      onInterrupt: config.on_interrupt ?? (method === "GET" ? "cancel" : "finish"),
      ...mannersOf(config),
    },
    problemOf: (given) => argumentProblem(params, given),
    async run(given, { toolCallId, signal }) {
      const labels = { "idempotency-key": `${callId}:${toolCallId}`, "x-call-id": callId };
      const bearer = Object.entries(bearerOf(config.connection_id, credentials));
      const opened = [...headers, ...bearer.map(([key, value]) => ({ key, value }))];
      const tool = { name, method, url, headers: opened, params };
      const result = await remote.ask({ is: "http", tool, given, headers: labels }, signal);
      return { text: textOf(result), isError: false };
    },
  };
}
