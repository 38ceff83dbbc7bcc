/** Tools of MCP servers: listed as the call begins, offered as soon as they are known. */
import type { Credentials } from "#contracts/internal_calls.ts";
import type { McpServer } from "#contracts/voice_agent.ts";
import type { Notices } from "../session/notices.ts";
import { bearerOf } from "./bearer.ts";
import type { McpTarget, RemoteTools } from "./remote_tools.ts";
import { type Tool, textOf } from "./tool.ts";

export interface McpHost {
  callId: string;
  credentials: Credentials;
  remote: RemoteTools;
  notices: Notices;
}

/** What a server tells of one of its tools. */
interface ListedTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

const timeoutMs = 30_000;
const longTimeoutMs = 600_000;
/** Tools that a model is offered, of all sources. */
export const toolsMax = 64;
const descriptionCharsMax = 1024;

/** Asks each server for its tools; `found` hears of those of one server at a time. A server that is away is warned of. */
export async function findMcpTools(
  servers: readonly McpServer[],
  host: McpHost,
  signal: AbortSignal,
  found: (server: McpServer, tools: Tool[]) => void,
): Promise<void> {
  await Promise.all(
    servers.map(async (server) => {
      try {
        const target = targetOf(server, host.credentials);
        const listed = (await host.remote.ask(
          { is: "mcp_list", server: target, callId: host.callId },
          signal,
        )) as ListedTool[];
        const allowed = server.allowed_tools?.length ? new Set(server.allowed_tools) : undefined;
        const offered = listed.filter(({ name }) => allowed?.has(name) ?? true);
        found(
          server,
          offered.map((tool) => toolOf(tool, server, target, host)),
        );
      } catch (cause) {
        if (signal.aborted) return;
        const why = cause instanceof Error ? cause.message : "no answer";
        host.notices.warn("mcp_unavailable", `The tools of ${server.name} are not there: ${why}`, server.name);
      }
    }),
  );
}

function targetOf({ url, headers = [], connection_id }: McpServer, credentials: Credentials): McpTarget {
  const given = Object.fromEntries(headers.map(({ key, value }) => [key.toLowerCase(), value]));
  return { url, headers: { ...given, ...bearerOf(connection_id, credentials) } };
}

function toolOf(listed: ListedTool, server: McpServer, target: McpTarget, { callId, remote }: McpHost): Tool {
  const { name, description, parameters } = listed;
  const longRunning = server.long_running ?? false;
  return {
    spec: { name: nameFor(name), description: description.slice(0, descriptionCharsMax), parameters },
    source: "mcp",
    policy: { timeoutMs: longRunning ? longTimeoutMs : timeoutMs, longRunning, onInterrupt: "finish" },
    async run(given, { signal }) {
      const result = await remote.ask({ is: "mcp_call", server: target, callId, name, given }, signal);
      return { text: textOf(result), isError: false };
    },
  };
}

/** Under the server's name, where another tool has its own already. */
export function underServer({ name }: McpServer, tool: Tool): Tool {
  return { ...tool, spec: { ...tool.spec, name: nameFor(`${name}__${tool.spec.name}`) } };
}

/** As models' vendors take a tool's name. */
function nameFor(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}
