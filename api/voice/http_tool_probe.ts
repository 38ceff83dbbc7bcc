/**
 * Tries an HTTP tool before an agent is given it: makes its request as a call would, and answers what came.
 * A tool that fails is an answer like any other.
 */

import { type Static, Type } from "@sinclair/typebox";
import { openConnection } from "#connections/connections.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { argumentProblem } from "#contracts/tool_params.ts";
import { HttpTool } from "#contracts/voice_agent.ts";
import { type Route, route } from "#http/route.ts";
import { requireProjectFor } from "#identity/projects.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import { HttpToolError } from "#outbound/http_tool.ts";
import { callHttpTool } from "#outbound/http_tool_call.ts";
import type { AnySql } from "#store/sql.ts";
import { configProblems } from "./agent_config.ts";
import { openTriedTool, type StoredSecrets } from "./header_secrets.ts";
import type { VoiceAgentDeps } from "./voice_agents.ts";

const timeoutSDefault = 10;
const timeoutSMax = 30;
const answerBytesMax = 32 * 1024;

const Probe = named(
  "HttpToolProbe",
  Type.Object(
    {
      project_id: Type.String({ format: "uuid" }),
      tool: HttpTool,
      arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      agent_id: Type.Optional(
        Type.String({ format: "uuid", description: "the agent whose stored headers masked values stand for" }),
      ),
    },
    { additionalProperties: false },
  ),
  {
    tool: "as it stands in an agent's `config.tools`",
    arguments: "what a model would give it; none unless given",
  },
);
type Probe = Static<typeof Probe>;

const ProbeResult = named(
  "HttpToolProbeResult",
  Type.Object({
    ok: Type.Boolean(),
    status: Type.Union([Type.Integer(), Type.Null()]),
    body: Type.Union([Type.String(), Type.Null()]),
    duration_ms: Type.Integer({ minimum: 0 }),
    error: Type.Optional(Type.String({ description: "why it failed, as a model would be told" })),
  }),
  {
    ok: "whether the tool answered with a status below 400",
    status: "of HTTP; null without an answer",
    body: `what came, up to ${answerBytesMax / 1024} KiB and without the values of the tool's headers; null without an answer`,
    duration_ms: "how long it took",
  },
);
type ProbeResult = Static<typeof ProbeResult>;

export function httpToolProbeRoutes(deps: VoiceAgentDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agents/voice/tools/http/test",
      waitsMs: timeoutSMax * 1000,
      summary: "Try an HTTP tool: its request is really made; one that fails is 200 with ok false",
      guard: deps.personalAccessToken,
      body: Probe,
      reply: { status: 200, body: ProbeResult },
      errors: ["forbidden", "not_found"],
      examples: {
        a_tool: {
          body: {
            project_id: "{{project_id}}",
            tool: { name: "find_room", url: "https://pms.example/rooms/{day}", params: [{ name: "day", in: "path" }] },
            arguments: { day: "2026-12-24" },
          },
        },
      },
      handle: async ({ principal, body }) => {
        await requireProjectFor(deps.sql, principal, body.project_id);
        return probe(deps, body, await openedTool(deps, body));
      },
    }),
  ];
}

/** With the values of its headers, its connection's among them. @throws ApiError by field path below `tool` */
async function openedTool(deps: VoiceAgentDeps, { project_id, agent_id, tool }: Probe): Promise<HttpTool> {
  const problems = configProblems({ tools: [tool] }, "config");
  if (problems) {
    const details = Object.entries(problems).map(([path, message]) => [
      path.replace("config.tools.0", "tool"),
      message,
    ]);
    throw new ApiError("bad_request", { details: Object.fromEntries(details) });
  }
  const stored = agent_id === undefined ? undefined : await storedSecrets(deps.sql, project_id, agent_id);
  const opened = openTriedTool(deps.encryption, tool, stored);
  if (tool.connection_id === undefined) return opened;
  const connection = await openConnection(deps, project_id, tool.connection_id);
  if (!connection) {
    throw new ApiError("not_found", { details: { "tool.connection_id": "Expected a connection of the project" } });
  }
  const bearer = { key: "authorization", value: `Bearer ${connection.secret}` };
  return { ...opened, headers: [...(opened.headers ?? []), bearer] };
}

async function storedSecrets(sql: AnySql, projectId: string, agentId: string): Promise<StoredSecrets> {
  const [agent] = await sql<StoredSecrets[]>`
    select id, header_secrets as sealed from voice_agent where id = ${agentId} and project_id = ${projectId}`;
  if (!agent) throw new ApiError("not_found", { details: { agent_id: "Expected an agent of the project" } });
  return agent;
}

async function probe(
  { allowPrivateAddresses }: VoiceAgentDeps,
  { arguments: given = {} }: Probe,
  tool: HttpTool,
): Promise<ProbeResult> {
  const problem = argumentProblem(tool.params ?? [], given);
  if (problem) return { ok: false, status: null, body: null, duration_ms: 0, error: `invalid_arguments: ${problem}` };
  const http = createGuardedHttp({ allowPrivateAddresses, headersTimeoutMs: 0, bodyTimeoutMs: 0 });
  const timeoutS = Math.min(tool.timeout_s ?? timeoutSDefault, timeoutSMax);
  const signal = AbortSignal.timeout(timeoutS * 1000);
  const startedMs = performance.now();
  const durationMs = () => Math.round(performance.now() - startedMs);
  try {
    const headers = { "idempotency-key": crypto.randomUUID() };
    const { status, host, text } = await callHttpTool(http, { tool, given, headers, signal, answerBytesMax });
    const answer = { status, body: text, duration_ms: durationMs() };
    return status < 400 ? { ok: true, ...answer } : { ok: false, ...answer, error: `${host} answered ${status}` };
  } catch (cause) {
    if (!(cause instanceof HttpToolError) && !signal.aborted) throw cause;
    const error = cause instanceof HttpToolError ? cause.message : `No answer within ${timeoutS} s`;
    return { ok: false, status: null, body: null, duration_ms: durationMs(), error };
  } finally {
    await http.close();
  }
}
