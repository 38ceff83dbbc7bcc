/**
 * Reserves a call: a URL that works once within two minutes. The agent's configuration is read when
 * the caller connects; the reservation adds formats, variables, overrides and metadata.
 */

import { type Static, Type } from "@sinclair/typebox";
import { AudioFormat, AudioFormatError, AudioFormatRequest, audioFormatFor } from "#contracts/audio_format.ts";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import type { ReservedCall } from "#contracts/internal_calls.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { voiceLimits, voiceProtocol } from "#contracts/voice_protocol.ts";
import type { Logger } from "#http/logger.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { newSecret } from "#identity/secret.ts";
import { additionProblems, callAdditions, findCallableAgent, insertCall } from "./call_rows.ts";

const Reservation = named(
  "NewCall",
  Type.Object(
    {
      audio_format: Type.Optional(AudioFormatRequest),
      output_audio_format: Type.Optional(AudioFormatRequest),
      protocol: Type.Optional(oneOf([voiceProtocol, "twilio"])),
      client_buffer_ms: Type.Optional(
        Type.Integer({
          minimum: voiceLimits.clientBufferMsMin,
          maximum: voiceLimits.clientBufferMsMax,
          default: voiceLimits.clientBufferMsDefault,
          about: "how far ahead of the loudspeaker sound is sent, milliseconds",
        }),
      ),
      ...callAdditions,
    },
    { additionalProperties: false },
  ),
  {
    audio_format: "what the client sends",
    output_audio_format: "what the client is sent; as it sends unless given",
    protocol: "the messages on the socket",
  },
);
type Reservation = Static<typeof Reservation>;

const Reserved = dataOf(
  named(
    "CallReservation",
    Type.Object({
      call_id: Type.String({ format: "uuid" }),
      websocket_url: Type.String(),
      audio_format: AudioFormat,
      output_audio_format: AudioFormat,
      protocol: Type.String(),
      resume_window_s: Type.Integer(),
      expires_at: Timestamp,
    }),
    {
      websocket_url: "connects once, within about two minutes",
      audio_format: "what the client sends",
      output_audio_format: "what the client is sent",
      protocol: "the messages on the socket",
      resume_window_s: "seconds within which a client whose link broke may come back",
      expires_at: "until then somebody has to connect",
    },
  ),
);

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
      errors: ["usage_limit", "forbidden", "gone", "too_many_requests"],
      paramsFrom: { agent_id: { route: "POST /v1/agents/voice/agents", field: "data.id" } },
      examples: {
        as_the_agent_is: { body: {} },
        a_telephone_line: { body: { audio_format: { encoding: "mulaw", sample_rate: 8000 }, client_buffer_ms: 100 } },
      },
      handle: async ({ principal, params, body }) => {
        const formats = formatsOf(body);
        const agent = await findCallableAgent(sql, principal, params.agent_id);
        requireReservation(body, agent.config);
        const { secret, sha256 } = newSecret();
        const callId = crypto.randomUUID();
        const createdAt = now();
        const expiresAt = new Date(createdAt.getTime() + voiceLimits.reservationTtlS * 1000);
        await insertCall(sql, {
          callId,
          caller: principal,
          runsOn: { agentId: params.agent_id },
          projectId: agent.project_id,
          entrance: { sha256 },
          formats,
          clientBufferMs: body.client_buffer_ms ?? voiceLimits.clientBufferMsDefault,
          additions: body,
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
    ...additionProblems(body, config),
  };
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
}
