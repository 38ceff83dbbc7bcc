/**
 * Reserves a call: a URL that works once within two minutes. The agent's configuration is read when
 * the caller connects; the reservation adds formats, variables, overrides and metadata.
 */
import { type Static, Type } from "@sinclair/typebox";
import { AudioFormat, AudioFormatError, AudioFormatRequest, audioFormatFor } from "#contracts/audio_format.ts";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import type { ReservedCall } from "#contracts/internal_calls.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { voiceLimits, voiceProtocol } from "#contracts/voice_protocol.ts";
import type { Logger } from "#http/logger.ts";
import { type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, requireProjectAccess } from "#identity/caller.ts";
import { newSecret } from "#identity/secret.ts";
import { type AnySql, json } from "#store/sql.ts";
import { overrideProblems, type Variables } from "./agent_config.ts";

const metadataBytesMax = 16 * 1024;

const Reservation = Type.Object(
  {
    audio_format: Type.Optional(AudioFormatRequest),
    output_audio_format: Type.Optional(AudioFormatRequest),
    protocol: Type.Optional(oneOf([voiceProtocol, "twilio"])),
    client_buffer_ms: Type.Optional(
      Type.Integer({
        minimum: voiceLimits.clientBufferMsMin,
        maximum: voiceLimits.clientBufferMsMax,
        default: voiceLimits.clientBufferMsDefault,
      }),
    ),
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
          { role: oneOf(["user", "agent"]), text: Type.String({ minLength: 1, maxLength: 16_000 }) },
          { additionalProperties: false },
        ),
        { maxItems: 100 },
      ),
    ),
  },
  { additionalProperties: false },
);
type Reservation = Static<typeof Reservation>;

const Reserved = Type.Object({
  data: Type.Object({
    call_id: Type.String({ format: "uuid" }),
    websocket_url: Type.String(),
    audio_format: AudioFormat,
    output_audio_format: AudioFormat,
    protocol: Type.String(),
    resume_window_s: Type.Integer(),
    expires_at: Timestamp,
  }),
});

export interface ReservationDeps extends ApiDeps {
  logger: Logger;
  /** The address that callers dial; `websocket_url` is made from it. */
  publicUrl: string;
}

export function callReservationRoutes({
  sql,
  bus,
  now,
  personalAccessToken,
  logger,
  publicUrl,
}: ReservationDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agents/voice/agents/{agent_id}/calls/websocket",
      summary: "Reserve a call; the URL works once, for two minutes",
      guard: personalAccessToken,
      body: Reservation,
      reply: { status: 201, body: Reserved },
      errors: ["forbidden", "gone", "too_many_requests"],
      handle: async ({ principal, params, body }) => {
        const formats = formatsOf(body);
        const agent = await findCallableAgent(sql, principal, params.agent_id);
        requireReservation(body, agent.config);
        const { secret, sha256 } = newSecret();
        const callId = crypto.randomUUID();
        const createdAt = now();
        const expiresAt = new Date(createdAt.getTime() + voiceLimits.reservationTtlS * 1000);
        await insertReservation(sql, {
          callId,
          caller: principal,
          agentId: params.agent_id,
          projectId: agent.project_id,
          sha256,
          formats,
          body,
          createdAt,
          expiresAt,
        });
        const entry: ReservedCall = {
          call_id: callId,
          secret_sha256: sha256,
          expires_at: expiresAt.toISOString(),
          allowed_origins: agent.allowed_origins,
          state: "reserved",
        };
        // Without the bus a gateway asks us for the reservation, so that its loss costs a round trip only.
        await bus
          .putReservation(entry)
          .catch((err: unknown) => logger.warn({ err, call_id: callId }, "bus did not take a reservation"));
        return {
          data: {
            call_id: callId,
            websocket_url: websocketUrl(publicUrl, callId, secret),
            audio_format: formats.input,
            output_audio_format: formats.output,
            protocol: voiceProtocol,
            resume_window_s: voiceLimits.resumeWindowS,
            expires_at: expiresAt,
          },
        };
      },
    }),
  ];
}

/** `{ws|wss}://{PUBLIC_URL's host}/v1/voice/calls/{call_id}/{secret}` */
export function websocketUrl(publicUrl: string, callId: string, secret: string): string {
  const { protocol, host } = new URL(publicUrl);
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/v1/voice/calls/${callId}/${secret}`;
}

interface Formats {
  input: AudioFormat;
  output: AudioFormat;
}

/** The output's format is the input's unless asked otherwise. */
function formatsOf(body: Reservation): Formats {
  const formatOf = (field: "audio_format" | "output_audio_format", request: AudioFormatRequest) => {
    try {
      return audioFormatFor(request);
    } catch (error) {
      if (!(error instanceof AudioFormatError)) throw error;
      throw new ApiError("bad_request", { details: { [`${field}.${error.field}`]: error.message } });
    }
  };
  const input = formatOf("audio_format", body.audio_format ?? {});
  const output = body.output_audio_format ? formatOf("output_audio_format", body.output_audio_format) : input;
  return { input, output };
}

/** @throws ApiError bad_request for what the schema alone cannot tell */
function requireReservation(body: Reservation, config: VoiceAgentConfig): void {
  const details: ErrorDetails = {
    ...(body.protocol === "twilio" && { protocol: `twilio is not available yet; expected ${voiceProtocol}` }),
    ...(bytesOf(body.metadata) > metadataBytesMax && {
      metadata: `Expected at most ${metadataBytesMax} bytes of JSON`,
    }),
    ...overrideProblems(config, body.config_overrides ?? {}),
  };
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
}

const bytesOf = (value: unknown) => (value === undefined ? 0 : new TextEncoder().encode(JSON.stringify(value)).length);

interface CallableAgent {
  project_id: string;
  config: VoiceAgentConfig;
  allowed_origins: string[];
}

/** @throws ApiError not_found, forbidden, or gone for an archived agent */
async function findCallableAgent(sql: AnySql, caller: Caller, agentId: string): Promise<CallableAgent> {
  const [agent] = await sql<(CallableAgent & { is_archived: boolean })[]>`
    select project_id, config, allowed_origins, deleted_at is not null as is_archived
    from voice_agent where id = ${agentId} and organization_id = ${caller.organizationId}`;
  if (!agent) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, agent.project_id);
  if (agent.is_archived)
    throw new ApiError("gone", { details: { agent_id: "Expected an agent that is not archived" } });
  return agent;
}

interface NewCall {
  callId: string;
  caller: Caller;
  agentId: string;
  projectId: string;
  sha256: string;
  formats: Formats;
  body: Reservation;
  createdAt: Date;
  expiresAt: Date;
}

/** Counts and inserts in one statement. @throws ApiError too_many_requests above the organization's bound */
async function insertReservation(sql: AnySql, call: NewCall): Promise<void> {
  const { body, caller } = call;
  const variables: Variables = body.variables ?? {};
  const inserted = await sql`
    insert into call
      (id, organization_id, project_id, agent_id, state, secret_sha256, protocol, input_format, output_format,
       client_buffer_ms, variables, metadata, config_overrides, initial_messages, created_at, created_by, expires_at)
    select
      ${call.callId}, ${caller.organizationId}, ${call.projectId}, ${call.agentId}, 'reserved', ${call.sha256},
      ${voiceProtocol}, ${json(sql, call.formats.input)}, ${json(sql, call.formats.output)},
      ${body.client_buffer_ms ?? voiceLimits.clientBufferMsDefault}, ${json(sql, variables)},
      ${json(sql, body.metadata ?? {})}, ${json(sql, body.config_overrides ?? {})},
      ${json(sql, body.initial_messages ?? [])}, ${call.createdAt}, ${caller.userId}, ${call.expiresAt}
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
