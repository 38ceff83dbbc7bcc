/**
 * Tries an MCP server before an agent is given it: connects as a call would, and lists its tools. A probe
 * that fails is an answer like any other.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { requireProjectFor } from "#identity/projects.ts";
import { AddressRefusedError, parsePublicUrl } from "#outbound/address_guard.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import { connectMcp, McpError } from "#outbound/mcp_client.ts";
import type { Encryption } from "#store/encryption.ts";
import { openConnection } from "./connections.ts";

const probeTimeoutMs = 15_000;

const Header = named(
  "McpHeader",
  Type.Object(
    {
      key: Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$", description: "an HTTP header name" }),
      value: Type.String({ maxLength: 8192, pattern: "^[\\x20-\\x7e\\t]*$", description: "printable ASCII" }),
    },
    { additionalProperties: false },
  ),
  {
    key: "the header's name",
    value: "what is sent with it",
  },
);
const Probe = named(
  "McpProbe",
  Type.Object(
    {
      project_id: Type.String({ format: "uuid" }),
      url: Type.String({ minLength: 1, maxLength: 2048 }),
      headers: Type.Optional(Type.Array(Header, { maxItems: 32 })),
      connection_id: Type.Optional(
        Type.String({ format: "uuid", description: "a connection of the project: its secret is the bearer token" }),
      ),
    },
    { additionalProperties: false },
  ),
  {
    url: "where the MCP server is",
    headers: "sent with every request",
    connection_id: "where the credential comes from",
  },
);
type Probe = Static<typeof Probe>;

const ProbeResult = named(
  "McpProbeResult",
  Type.Object({
    ok: Type.Boolean(),
    tools: Type.Array(
      named("McpServerTool", Type.Object({ name: Type.String(), description: Type.String() }), {
        name: "what it is called by",
        description: "what it does, in the server's words",
      }),
    ),
    error: Type.Optional(Type.String({ description: "why the probe failed" })),
  }),
  {
    ok: "whether the server listed its tools",
    tools: "what it has",
  },
);
type ProbeResult = Static<typeof ProbeResult>;

export interface McpProbeDeps extends ApiDeps {
  encryption: Encryption;
  allowPrivateAddresses: boolean;
}

export function mcpProbeRoutes(deps: McpProbeDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agents/voice/tools/mcp/test",
      waitsMs: probeTimeoutMs,
      summary: "Try an MCP server and list its tools; a failed probe is 200 with ok false",
      guard: deps.personalAccessToken,
      body: Probe,
      reply: { status: 200, body: ProbeResult },
      errors: ["forbidden", "not_found"],
      examples: {
        a_server: { body: { project_id: "{{project_id}}", url: "https://mcp.example/mcp" } },
      },
      handle: async ({ principal, body }) => {
        await requireProjectFor(deps.sql, principal, body.project_id);
        return probe(deps, body, await headersOf(deps, body));
      },
    }),
  ];
}

/** @throws ApiError not_found for a connection that the project does not have */
async function headersOf(deps: McpProbeDeps, { project_id, headers = [], connection_id }: Probe) {
  const given = Object.fromEntries(headers.map(({ key, value }) => [key.toLowerCase(), value]));
  if (connection_id === undefined) return given;
  const connection = await openConnection(deps, project_id, connection_id);
  if (!connection)
    throw new ApiError("not_found", { details: { connection_id: "Expected a connection of the project" } });
  return { ...given, authorization: `Bearer ${connection.secret}` };
}

async function probe(
  { allowPrivateAddresses }: McpProbeDeps,
  { url }: Probe,
  headers: Readonly<Record<string, string>>,
): Promise<ProbeResult> {
  const http = createGuardedHttp({ allowPrivateAddresses });
  const signal = AbortSignal.timeout(probeTimeoutMs);
  try {
    parsePublicUrl(url, { protocols: ["https:", "http:"], allowPrivateAddresses });
    const session = await connectMcp({ url, headers }, http);
    try {
      const tools = await session.listTools(signal);
      return { ok: true, tools: tools.map(({ name, description }) => ({ name, description })) };
    } finally {
      await session.close().catch(() => undefined);
    }
  } catch (error) {
    return { ok: false, tools: [], error: reasonOf(error) };
  } finally {
    await http.close();
  }
}

/** For the agent's author; nothing of what the server sent. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressRefusedError) return error.message;
  if (!(error instanceof McpError)) return "The MCP server did not list its tools";
  // The SDK's error for an answer that is no MCP has the HTTP status as its code.
  const status = (error.cause as { code?: unknown } | undefined)?.code;
  return typeof status === "number" && status >= 100 ? `${error.message}: it answered ${status}` : error.message;
}
