/**
 * Call records: timing, end reason, what was said and really heard, the latency of each turn, tools, usage.
 * A call in progress takes client messages through `control`.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { topics } from "#bus/bus.ts";
import { AudioFormat } from "#contracts/audio_format.ts";
import {
  CallEvent,
  CallFailure,
  CallRequest,
  CallTool,
  callStates,
  TranscriptItem,
  TurnMetrics,
} from "#contracts/call_record.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { callTransports } from "#contracts/room_call.ts";
import { type ClientMessageType, clientMessageSchemas, Usage, voiceLimits } from "#contracts/voice_protocol.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { type Validator, validatorFor } from "#http/validation.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, inReach, requireProjectAccess } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import type { AnySql } from "#store/sql.ts";

const orNull = <S extends TSchema>(schema: S) => Type.Unsafe<Static<S> | null>({ anyOf: [schema, { type: "null" }] });

const callFields = {
  id: Type.String({ format: "uuid" }),
  agent_id: nullableText,
  project_id: Type.String({ format: "uuid" }),
  state: oneOf(callStates),
  transport: oneOf(callTransports),
  room_name: nullableText,
  protocol: Type.String(),
  audio_format: AudioFormat,
  output_audio_format: AudioFormat,
  metadata: Type.Record(Type.String(), Type.Unknown()),
  created_at: Timestamp,
  expires_at: Timestamp,
  started_at: OptionalTimestamp,
  ended_at: OptionalTimestamp,
  duration_ms: orNull(Type.Number()),
  end_reason: nullableText,
  error_code: Type.Union([CallFailure, Type.Null()]),
  usage: orNull(Usage),
};
const Call = named("Call", Type.Object(callFields), {
  agent_id: "the voice agent; null of a draft session, which has none",
  state: "`reserved` until somebody connects",
  transport: "a WebSocket, or a LiveKit room",
  room_name: "of a call in a room; null otherwise",
  protocol: "the messages on the socket",
  audio_format: "what the client sends",
  output_audio_format: "what the client is sent",
  metadata: "what was given with its reservation",
  expires_at: "until then somebody has to connect",
  duration_ms: "from its start to its end; null before",
  end_reason: "why it ended; null before",
  error_code: "what failed, where the reason is `error`; null otherwise",
  usage: "what it used; null before its end",
});
type Call = Static<typeof Call>;
const CallRecord = named(
  "CallRecord",
  Type.Object({
    ...Call.properties,
    transcript: Type.Array(TranscriptItem),
    turns: Type.Array(TurnMetrics),
    tools: Type.Array(CallTool),
    requests: Type.Array(CallRequest),
    events: Type.Array(CallEvent),
  }),
  {
    transcript: "what was said, oldest first",
    turns: "how long each turn took, oldest first",
    tools: "tools that its model called, oldest first",
    requests: "requests to its models, in the order in which they were over",
    events: "warnings and errors that its client was told, oldest first",
  },
);

const clientMessageTypes = Object.keys(clientMessageSchemas) as ClientMessageType[];
const ControlMessage = named(
  "ControlMessage",
  Type.Object(
    { type: oneOf(clientMessageTypes) },
    { additionalProperties: true, description: "A client message of voice.v1" },
  ),
  {
    type: "which message; the protocol's page says what else is in it",
  },
);
const messageValidators = Object.fromEntries(
  clientMessageTypes.map((type) => [type, validatorFor(clientMessageSchemas[type])]),
) as Record<ClientMessageType, Validator<unknown>>;

const sortColumns = ["created_at", "started_at", "ended_at", "duration_ms"] as const;

export function callRoutes({ sql, bus, now, personalAccessToken }: ApiDeps): Route[] {
  const path = "/v1/agents/voice/calls";
  return [
    listRoute(sql, {
      path,
      summary: "List calls, newest first",
      guard: personalAccessToken,
      row: Call,
      filters: {
        agent_id: Type.String({ format: "uuid", about: "calls of one agent" }),
        project_id: Type.String({ format: "uuid", about: "calls of one project" }),
        state: { ...oneOf(callStates), about: "calls in this state" },
        transport: { ...oneOf(callTransports), about: "calls over a WebSocket, or in a room" },
      },
      times: ["started_at"],
      sort: sortColumns,
      examples: { the_longest: { query: { sort: "-duration_ms", page_size: 10 } } },
      rows: ({ principal }) => ({
        columns: columns(sql, now()),
        from: sql`call`,
        where: inReach(sql, principal),
        computed: { state: state(sql, now()) },
      }),
    }),
    route({
      method: "GET",
      path: "/v1/agents/voice/calls/{call_id}",
      summary: "Get a call with its transcript, its turns, its tools and what went wrong",
      guard: personalAccessToken,
      reply: { status: 200, body: dataOf(CallRecord) },
      errors: ["forbidden"],
      paramsFrom: {
        call_id: { route: "POST /v1/agents/voice/agents/{agent_id}/calls/websocket", field: "data.call_id" },
      },
      examples: { a_call: {} },
      handle: async ({ principal, params }) => {
        const call = await findCall(sql, principal, params.call_id, now());
        const [transcript, turns, tools, requests, events] = await Promise.all([
          sql<StoredItem[]>`
            select item_id, turn_id, role, text, heard_text, interrupted, backchannel, heard_basis, start_ms, end_ms
            from call_item where call_id = ${call.id} order by start_ms, position`,
          sql<{ metrics: TurnMetrics }[]>`
            select metrics from call_turn where call_id = ${call.id} order by position`,
          sql<CallTool[]>`
            select tool_call_id, name, source, state, task_id, run_id, arguments, result, error, started_ms, duration_ms
            from call_tool where call_id = ${call.id} order by position`,
          sql<{ request: CallRequest }[]>`
            select request from call_request where call_id = ${call.id} order by position`,
          sql<CallEvent[]>`
            select event_id, at_ms, type, data from call_event where call_id = ${call.id} order by position`,
        ]);
        const record = {
          transcript: transcript.map(itemOf),
          turns: turns.map((turn) => turn.metrics),
          tools: tools.map(({ task_id, run_id, ...tool }) => ({
            ...tool,
            ...(task_id && { task_id }),
            ...(run_id && { run_id }),
          })),
          requests: requests.map(({ request }) => request),
          events: [...events],
        };
        return { data: { ...call, ...record } };
      },
    }),
    route({
      method: "POST",
      path: "/v1/agents/voice/calls/{call_id}/control",
      summary: "Send a client message into a call in progress",
      guard: personalAccessToken,
      body: ControlMessage,
      bodyOptions: { bytesMax: voiceLimits.messageBytesMax },
      reply: { status: 204 },
      errors: ["forbidden", "conflict"],
      paramsFrom: {
        call_id: { route: "POST /v1/agents/voice/agents/{agent_id}/calls/websocket", field: "data.call_id" },
      },
      examples: {
        before_it_has_begun: {
          body: { type: "hang_up" },
          status: 409,
          answer: { error: { code: "conflict", message: "Conflict" } },
        },
      },
      handle: async ({ principal, params, body }) => {
        messageValidators[body.type].parse(body);
        await findCall(sql, principal, params.call_id, now());
        const [active] = await sql<{ gateway_id: string }[]>`
          select gateway_id from call where id = ${params.call_id} and state = 'in_progress'`;
        if (!active) throw new ApiError("conflict", { details: { call_id: "Expected a call in progress" } });
        const payload = JSON.stringify({ call_id: params.call_id, message: body });
        await bus.publish(topics.callControl(active.gateway_id), payload);
      },
    }),
  ];
}

type StoredItem = Omit<TranscriptItem, "heard_basis"> & { heard_basis: TranscriptItem["heard_basis"] | null };

const itemOf = ({ heard_basis, ...item }: StoredItem): TranscriptItem =>
  heard_basis ? { ...item, heard_basis } : item;

/** A reservation is expired from its last second on, whether or not the sweeper has come by. */
const state = (sql: AnySql, now: Date) =>
  sql`case when state = 'reserved' and expires_at <= ${now} then 'expired' else state end`;

const columns = (sql: AnySql, now: Date) => sql`
  id, agent_id, project_id, ${state(sql, now)} as state, transport, room_name, protocol, input_format as audio_format,
  output_format as output_audio_format, metadata, created_at, expires_at, started_at, ended_at, duration_ms,
  end_reason, error_code, usage`;

/** @throws ApiError not_found, or forbidden for a project that the caller does not reach */
async function findCall(sql: AnySql, caller: Caller, callId: string, now: Date): Promise<Call> {
  const [call] = await sql<Call[]>`
    select ${columns(sql, now)} from call
    where id = ${callId} and organization_id = ${caller.organizationId}`;
  if (!call) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, call.project_id);
  return call;
}
