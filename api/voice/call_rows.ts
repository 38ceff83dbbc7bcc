/**
 * What the ways to start a call have in common: the agent that is called, what a request may add to
 * its configuration, and the row that the call begins as.
 */
import { type Static, type TObject, Type } from "@sinclair/typebox";
import type { AudioFormat } from "#contracts/audio_format.ts";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { voiceLimits, voiceProtocol } from "#contracts/voice_protocol.ts";
import { type Caller, requireProjectAccess } from "#identity/caller.ts";
import { type AnySql, type Fragment, json } from "#store/sql.ts";
import { requireUnderLimit } from "#usage/limits.ts";
import { overrideProblems, type Variables } from "./agent_config.ts";
import type { SealedConfig } from "./header_secrets.ts";

const metadataBytesMax = 16 * 1024;

/** Fields of every request that starts a call. */
export const callAdditions = {
  variables: Type.Optional(
    Type.Record(
      Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$" }),
      Type.Union([Type.String({ maxLength: 4000 }), Type.Number(), Type.Boolean()], {
        description: "a string of up to 4000 characters, a number or a boolean",
      }),
      { additionalProperties: false, maxProperties: 100, description: "Values of {{name}} in the agent's texts" },
    ),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: `Kept with the call; at most ${metadataBytesMax} bytes`,
    }),
  ),
  config_overrides: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "As the agent's config, without connections, headers and URLs",
    }),
  ),
  initial_messages: Type.Optional(
    Type.Array(
      Type.Object(
        {
          role: { ...oneOf(["user", "agent"]), about: "who said it" },
          text: Type.String({ minLength: 1, maxLength: 16_000, about: "what was said" }),
        },
        { additionalProperties: false },
      ),
      { maxItems: 100, about: "what was said before the call" },
    ),
  ),
};
export type CallAdditions = Static<TObject<typeof callAdditions>>;

/** Problems of the additions to `config` that the schema alone cannot tell, by field path. */
export function additionProblems(body: CallAdditions, config: VoiceAgentConfig): ErrorDetails {
  return {
    ...(bytesOf(body.metadata) > metadataBytesMax && {
      metadata: `Expected at most ${metadataBytesMax} bytes of JSON`,
    }),
    ...overrideProblems(config, body.config_overrides ?? {}),
  };
}

const bytesOf = (value: unknown) => (value === undefined ? 0 : new TextEncoder().encode(JSON.stringify(value)).length);

export interface CallableAgent {
  project_id: string;
  config: VoiceAgentConfig;
  allowed_origins: string[];
}

/** @throws ApiError not_found, forbidden, or gone for an archived agent */
export async function findCallableAgent(sql: AnySql, caller: Caller, agentId: string): Promise<CallableAgent> {
  const [agent] = await sql<(CallableAgent & { is_archived: boolean })[]>`
    select project_id, config, allowed_origins, deleted_at is not null as is_archived
    from voice_agent where id = ${agentId} and organization_id = ${caller.organizationId}`;
  if (!agent) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, agent.project_id);
  if (agent.is_archived)
    throw new ApiError("gone", { details: { agent_id: "Expected an agent that is not archived" } });
  return agent;
}

export interface NewCall {
  callId: string;
  caller: Caller;
  /** Whose configuration at connect the call runs on, or the configuration itself. */
  runsOn: { agentId: string } | SealedConfig;
  projectId: string;
  /** How the caller gets in: the URL's secret, hashed, or the room. */
  entrance: { sha256: string } | { roomName: string };
  formats: { input: AudioFormat; output: AudioFormat };
  clientBufferMs: number;
  additions: CallAdditions;
  createdAt: Date;
  expiresAt: Date;
}

/** Counts and inserts in one statement. @throws ApiError too_many_requests above the organization's bound, usage_limit */
export async function insertCall(sql: AnySql, call: NewCall): Promise<void> {
  const { additions, caller, entrance, runsOn } = call;
  const subjectId = "agentId" in runsOn ? runsOn.agentId : undefined;
  await requireUnderLimit(sql, { organizationId: caller.organizationId, subjectId }, call.createdAt);
  const variables: Variables = additions.variables ?? {};
  const [transport, sha256, roomName] =
    "roomName" in entrance ? ["room", "", entrance.roomName] : ["websocket", entrance.sha256, null];
  const inserted = await sql`
    insert into call
      (id, organization_id, project_id, agent_id, inline_config, header_secrets, state, transport, room_name, secret_sha256, protocol,
       input_format, output_format, client_buffer_ms, variables, metadata, config_overrides, initial_messages,
       created_at, created_by, expires_at)
    select
      ${call.callId}, ${caller.organizationId}, ${call.projectId}, ${"agentId" in runsOn ? runsOn.agentId : null},
      ${"config" in runsOn ? json(sql, runsOn.config) : null}, ${"config" in runsOn ? runsOn.secrets : null}, 'reserved', ${transport}, ${roomName}, ${sha256},
      ${voiceProtocol}, ${json(sql, call.formats.input)}, ${json(sql, call.formats.output)}, ${call.clientBufferMs},
      ${json(sql, variables)}, ${json(sql, additions.metadata ?? {})}, ${json(sql, additions.config_overrides ?? {})},
      ${json(sql, additions.initial_messages ?? [])}, ${call.createdAt}, ${caller.userId}, ${call.expiresAt}
    where (
      select count(*) from (
        select 1 from call
        where organization_id = ${caller.organizationId} and state = 'reserved' and expires_at > ${call.createdAt}
        limit ${voiceLimits.openReservationsMax}
      ) as open_reservation
    ) < ${voiceLimits.openReservationsMax}`;
  if (inserted.count === 1) return;
  const [oldest] = await sql<{ expires_at: Date | null }[]>`
    select min(expires_at) as expires_at from call
    where organization_id = ${caller.organizationId} and state = 'reserved' and expires_at > ${call.createdAt}`;
  const waitMs = (oldest?.expires_at?.getTime() ?? 0) - call.createdAt.getTime();
  throw new ApiError("too_many_requests", { retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) });
}

/** Keeps with a call the stay that it quoted: what it may book. */
export async function keepQuotedStay(sql: AnySql, callId: string, stay: object): Promise<void> {
  await sql`update call set quoted_stay = ${json(sql, stay)} where id = ${callId}`;
}

/**
 * A call that is in progress.
 * @param columns of `call` and its `agent`; `coalesce(call.inline_config, agent.config)` is its configuration
 * @throws ApiError not_found
 */
export async function callInProgress<Row extends object>(sql: AnySql, callId: string, columns: Fragment): Promise<Row> {
  const [call] = await sql<Row[]>`
    select ${columns} from call left join voice_agent agent on agent.id = call.agent_id
    where call.id = ${callId} and call.state = 'in_progress'`;
  if (!call) throw new ApiError("not_found");
  return call as Row;
}
