/**
 * Calls in LiveKit rooms: an endpoint answers a token for one room, in which the agent already sits.
 * The slot is taken before the answer; who gets a token has an agent to talk to for two minutes.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { roomAudio, roomLimits, roomNameFor } from "#contracts/room_call.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { type Route, route } from "#http/route.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, visibleProjects } from "#identity/caller.ts";
import { requireProjectFor } from "#identity/projects.ts";
import type { LiveKit } from "#outbound/livekit.ts";
import type { Encryption } from "#store/encryption.ts";
import type { AnySql } from "#store/sql.ts";
import { agentConfigSchema } from "./agent_config.ts";
import { requireConfig } from "./agent_connections.ts";
import type { AppInputs } from "./app_inputs.ts";
import { additionProblems, type CallAdditions, callAdditions, findCallableAgent, insertCall } from "./call_rows.ts";
import { sealHeaders } from "./header_secrets.ts";
import { type SeatRequests, seatsMsMax } from "./seat_requests.ts";

const agentName = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "A LiveKit Agents worker that takes the seat in place of the built-in agent; no slot is taken then",
});
const RoomRequest = named(
  "NewRoom",
  Type.Object({ ...callAdditions, agent_name: Type.Optional(agentName) }, { additionalProperties: false }),
);
const SessionRequest = named(
  "NewRealtimeSession",
  Type.Object(
    {
      ...callAdditions,
      agent_name: Type.Optional(agentName),
      agent_id: Type.Optional(Type.String({ format: "uuid", description: "An agent, as at its own rooms endpoint" })),
      // Checked by `configProblems`, whose messages know the providers; described by the schema.
      config: Type.Optional(Type.Unsafe<unknown>(agentConfigSchema)),
      project_id: Type.Optional(
        Type.String({
          format: "uuid",
          description: "With `config`: where the record goes; default the oldest project",
        }),
      ),
    },
    { additionalProperties: false, description: "Either `agent_id` or a full `config`" },
  ),
  {
    config: "a full configuration, as an agent has it",
  },
);

const RealtimeSession = named(
  "RealtimeSession",
  Type.Object({
    token: Type.String(),
    room_name: Type.String(),
    url: Type.String(),
  }),
  {
    token: "joins this one room, within ten minutes",
    room_name: "the room of LiveKit",
    url: "the LiveKit server, for any LiveKit client",
  },
);
type RealtimeSession = Static<typeof RealtimeSession>;

export interface RoomSessionDeps extends ApiDeps {
  /** Undefined where LiveKit is not configured. */
  liveKit: LiveKit | undefined;
  allowPrivateAddresses: boolean;
  appInputs: AppInputs;
  encryption: Encryption;
  seats: SeatRequests;
}

/** What is to run in the room. */
interface Wanted {
  projectId: string;
  config: VoiceAgentConfig;
  agentId: string | undefined;
  agentName: string | undefined;
  additions: CallAdditions;
}

export function roomSessionRoutes(deps: RoomSessionDeps): Route[] {
  const { sql, personalAccessToken } = deps;

  const ofAgent = async (caller: Caller, agentId: string, body: Static<typeof RoomRequest>) => {
    const agent = await findCallableAgent(sql, caller, agentId);
    return openSession(deps, caller, {
      projectId: agent.project_id,
      config: agent.config,
      agentId,
      agentName: body.agent_name,
      additions: body,
    });
  };

  return [
    route({
      method: "POST",
      path: "/v1/agents/voice/agents/{agent_id}/rooms",
      waitsMs: seatsMsMax,
      summary: "Open a LiveKit room with the agent in it",
      guard: personalAccessToken,
      body: RoomRequest,
      reply: { status: 201, body: RealtimeSession },
      errors: ["usage_limit", "forbidden", "gone", "too_many_requests", "unavailable"],
      paramsFrom: { agent_id: { route: "POST /v1/agents/voice/agents", field: "data.id" } },
      examples: { with_a_greeting_by_name: { body: { variables: { guest: "Ms Rossi" } } } },
      handle: ({ principal, params, body }) => ofAgent(principal, params.agent_id, body),
    }),
    route({
      method: "POST",
      path: "/v1/agents/voice/sessions",
      waitsMs: seatsMsMax,
      summary: "Open a room with a draft agent, by its config, or with an agent by agent_id",
      guard: personalAccessToken,
      body: SessionRequest,
      reply: { status: 201, body: RealtimeSession },
      errors: ["usage_limit", "forbidden", "not_found", "gone", "too_many_requests", "unavailable"],
      examples: { an_agent_that_exists: { body: { agent_id: "{{agent_id}}" } } },
      handle: async ({ principal, body }) => {
        requireOneOf(body);
        if (body.agent_id !== undefined) return ofAgent(principal, body.agent_id, body);
        const projectId = await projectFor(sql, principal, body.project_id);
        return openSession(deps, principal, {
          projectId,
          config: await requireConfig(deps, projectId, body.config),
          agentId: undefined,
          agentName: body.agent_name,
          additions: body,
        });
      },
    }),
  ];
}

/** @throws ApiError bad_request unless the body says in exactly one way what is to run */
function requireOneOf(body: Static<typeof SessionRequest>): void {
  const details: ErrorDetails =
    body.agent_id === undefined
      ? { ...(body.config === undefined && { config: "Expected a config, or an agent_id" }) }
      : {
          ...(body.config !== undefined && { config: "Expected either config or agent_id, not both" }),
          ...(body.project_id !== undefined && { project_id: "Expected with config only: an agent has its project" }),
        };
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
}

async function projectFor(sql: AnySql, caller: Caller, asked: string | undefined): Promise<string> {
  if (asked !== undefined) {
    await requireProjectFor(sql, caller, asked);
    return asked;
  }
  const [oldest] = await sql<{ id: string }[]>`
    select id from (select id, id as project_id, created_at from project
      where organization_id = ${caller.organizationId} and deleted_at is null) as project
    where ${visibleProjects(sql, caller)} order by created_at, id limit 1`;
  if (!oldest) throw new ApiError("bad_request", { details: { project_id: "Expected a project: none is yours" } });
  return oldest.id;
}

async function openSession(deps: RoomSessionDeps, caller: Caller, wanted: Wanted): Promise<RealtimeSession | Response> {
  const { liveKit } = deps;
  const details = additionProblems(wanted.additions, wanted.config);
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
  if (!liveKit) {
    throw new ApiError("unavailable", { details: { room: "Expected a LiveKit server: there is none here" } });
  }
  const callId = crypto.randomUUID();
  const roomName = roomNameFor(wanted.agentId, callId);
  if (wanted.agentName !== undefined) {
    const metadata = dispatchMetadata(callId, wanted);
    const token = await liveKit.callerToken(roomName, { agentName: wanted.agentName, metadata });
    return { token, room_name: roomName, url: liveKit.url };
  }
  const seated = await seat(deps, liveKit, caller, wanted, { callId, roomName });
  if (seated !== "seated") return refusal(seated);
  return { token: await liveKit.callerToken(roomName), room_name: roomName, url: liveKit.url };
}

/** What a LiveKit Agents worker learns of the call that it is to take. */
function dispatchMetadata(callId: string, { agentId, additions }: Wanted): string {
  return JSON.stringify({
    call_id: callId,
    ...(agentId !== undefined && { agent_id: agentId }),
    variables: additions.variables ?? {},
    metadata: additions.metadata ?? {},
  });
}

/** The call's row first, so that a caller who is quick finds it; without a seat it is taken back. */
async function seat(
  { sql, now, seats, encryption }: RoomSessionDeps,
  liveKit: LiveKit,
  caller: Caller,
  wanted: Wanted,
  { callId, roomName }: { callId: string; roomName: string },
): Promise<"seated" | "capacity" | "unavailable"> {
  const createdAt = now();
  const expiresAt = new Date(createdAt.getTime() + roomLimits.seatTtlS * 1000);
  await insertCall(sql, {
    callId,
    caller,
    runsOn: wanted.agentId === undefined ? sealHeaders(encryption, callId, wanted.config) : { agentId: wanted.agentId },
    projectId: wanted.projectId,
    entrance: { roomName },
    formats: roomAudio,
    clientBufferMs: roomLimits.clientBufferMs,
    additions: wanted.additions,
    createdAt,
    expiresAt,
  });
  const found = await seats
    .find({
      call_id: callId,
      url: liveKit.url,
      room_name: roomName,
      token: await liveKit.agentToken(roomName),
      expires_at: expiresAt.toISOString(),
    })
    .catch(() => ({ result: "unavailable" as const }));
  if (found.result === "seated") {
    await sql`update call set gateway_id = ${found.gatewayId} where id = ${callId} and state = 'reserved'`;
  } else {
    await sql`delete from call where id = ${callId} and state = 'reserved'`;
  }
  return found.result;
}

/** 503 with `code` on top, as a refused WebSocket has it, and in the platform's envelope. */
function refusal(result: "capacity" | "unavailable"): Response {
  if (result === "unavailable") {
    const details = { room: "Expected a gateway and the LiveKit server to answer" };
    throw new ApiError("unavailable", { details, retryAfterS: 5 });
  }
  const error = new ApiError("unavailable", { details: { capacity: "Expected a free call slot: all are taken" } });
  return Response.json(
    { code: "capacity", error: error.body() },
    { status: error.status, headers: { "retry-after": String(1 + Math.floor(Math.random() * 5)) } },
  );
}
