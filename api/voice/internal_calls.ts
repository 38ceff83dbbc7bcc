/**
 * The seam to the gateway, `/internal/calls/*`, as `#contracts/internal_calls.ts` documents it.
 * Reports are written whatever state a call is in, so that a transcript survives a race with the
 * sweeper; how a call ended is decided once, by whoever says so first.
 */

import { type Static, Type } from "@sinclair/typebox";
import type { AudioFormat } from "#contracts/audio_format.ts";
import { CallProgress } from "#contracts/call_record.ts";
import { ApiError } from "#contracts/errors.ts";
import {
  CloseCallRequest,
  HeartbeatReply,
  HeartbeatRequest,
  heartbeatLostS,
  OpenCallRequest,
  OpenedCall,
  ReservedCall,
} from "#contracts/internal_calls.ts";
import { named } from "#contracts/named_schema.ts";
import type { PriceTable } from "#contracts/usage.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { Logger } from "#http/logger.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { validatorFor } from "#http/validation.ts";
import { pricesFor } from "#providers/price_table.ts";
import type { Encryption } from "#store/encryption.ts";
import { type AnySql, json, type Sql } from "#store/sql.ts";
import { noteTracesDue } from "#traces/trace_due.ts";
import { endedByLimit, requireUnderLimit } from "#usage/limits.ts";
import { callConfigFor, type Variables } from "./agent_config.ts";
import { openCredentials, withAppInputs } from "./agent_connections.ts";
import type { AppInputs } from "./app_inputs.ts";
import { writeProgress } from "./call_progress.ts";
import { countCalls } from "./call_usage.ts";
import { openHeaders } from "./header_secrets.ts";

/** A report of a thousand calls is larger than a customer's request may be. */
const bodyOptions = { bytesMax: 64 * 1024 * 1024, repairText: true };

/** Progress is checked call by call: one odd report must not cost the others their heartbeat. */
const UncheckedProgress = Type.Object({ call_id: CallProgress.properties.call_id });
const HeartbeatEnvelope = Type.Object({
  gateway_id: HeartbeatRequest.properties.gateway_id,
  calls: Type.Array(UncheckedProgress, { maxItems: 1000 }),
});
const CloseEnvelope = Type.Object({
  gateway_id: CloseCallRequest.properties.gateway_id,
  end: CloseCallRequest.properties.end,
  progress: UncheckedProgress,
});
const progressValidator = validatorFor(CallProgress);

export interface InternalCallsDeps {
  sql: Sql;
  now(): Date;
  logger: Logger;
  encryption: Encryption;
  internal: Guard<undefined>;
  prices: PriceTable;
  appInputs: AppInputs;
}

export function internalCallRoutes({
  sql,
  now,
  logger,
  encryption,
  internal,
  prices,
  appInputs,
}: InternalCallsDeps): Route[] {
  const checkedProgress = (reports: readonly Static<typeof UncheckedProgress>[]): CallProgress[] =>
    reports.filter((report): report is CallProgress => {
      const problems = progressValidator.problemsOf(report);
      if (problems) logger.error({ call_id: report.call_id, fields: Object.keys(problems) }, "call progress dropped");
      return !problems;
    });

  return [
    route({
      method: "GET",
      path: "/internal/calls/{call_id}",
      summary: "A reservation that the bus does not know",
      guard: internal,
      reply: { status: 200, body: named("ReservedCall", ReservedCall) },
      handle: async ({ params }) => {
        const [call] = await sql<(Omit<ReservedCall, "expires_at"> & { expires_at: Date })[]>`
          select call.id as call_id, call.secret_sha256, call.expires_at, call.state,
                 coalesce(agent.allowed_origins, '{}') as allowed_origins
          from call left join voice_agent agent on agent.id = call.agent_id
          where call.id = ${params.call_id}`;
        if (!call) throw new ApiError("not_found");
        const isOverdue = call.state === "reserved" && call.expires_at <= now();
        return { ...call, expires_at: call.expires_at.toISOString(), state: isOverdue ? "expired" : call.state };
      },
    }),
    route({
      method: "POST",
      path: "/internal/calls/{call_id}/open",
      summary: "Open a reserved call, once",
      guard: internal,
      body: named("OpenCallRequest", OpenCallRequest),
      reply: { status: 200, body: named("OpenedCall", OpenedCall) },
      handle: async ({ params, body }) => {
        const call = await openCall(sql, params.call_id, body.gateway_id, now());
        // What is sealed is sealed under the agent, or under the call where it has a configuration of its own.
        const sealedUnder = call.agent_id ?? params.call_id;
        const opened = openHeaders(encryption, sealedUnder, call.config, call.header_secrets);
        const config = callConfigFor(opened, call.config_overrides, call.variables);
        return {
          call_id: params.call_id,
          ...(call.agent_id !== null && { agent_id: call.agent_id }),
          organization_id: call.organization_id,
          config: await withAppInputs(appInputs, call.project_id, config),
          credentials: await openCredentials({ sql, encryption }, call.project_id, config),
          prices: pricesFor(prices, config),
          input_format: call.input_format,
          output_format: call.output_format,
          client_buffer_ms: call.client_buffer_ms,
          initial_messages: call.initial_messages,
        };
      },
    }),
    route({
      method: "POST",
      path: "/internal/calls/heartbeat",
      summary: "Calls of a gateway go on",
      guard: internal,
      body: named("HeartbeatEnvelope", HeartbeatEnvelope),
      bodyOptions,
      reply: { status: 200, body: named("HeartbeatReply", HeartbeatReply) },
      handle: async ({ body }) => {
        const reports = checkedProgress(body.calls);
        const callIds = body.calls.map((call) => call.call_id);
        const alive = await sql.begin(async (transaction) => {
          await beatGateway(transaction, body.gateway_id, now());
          const ids = new Set(await beatCalls(transaction, body.gateway_id, callIds, now()));
          const own = await ownReports(transaction, body.gateway_id, reports);
          await writeProgress(transaction, own);
          await countCalls(transaction, [...new Set([...ids, ...own.map(({ call_id }) => call_id)])], now());
          // A call that the sweeper was faster to close still grew.
          const late = own.map(({ call_id }) => call_id).filter((id) => !ids.has(id));
          if (late.length > 0) await noteTracesDue(transaction, "call", late);
          return ids;
        });
        const over_limit = await callsOverLimit(sql, [...alive], now());
        return { closed: callIds.filter((callId) => !alive.has(callId)), ...(over_limit.length > 0 && { over_limit }) };
      },
    }),
    route({
      method: "POST",
      path: "/internal/calls/{call_id}/close",
      summary: "A call is over; the first close wins",
      guard: internal,
      body: named("CloseEnvelope", CloseEnvelope),
      bodyOptions,
      reply: { status: 204 },
      handle: async ({ params, body }) => {
        const reports = checkedProgress([{ ...body.progress, call_id: params.call_id }]);
        await sql.begin(async (transaction) => {
          const known = await transaction`select 1 from call where id = ${params.call_id} for update`;
          if (known.length === 0) throw new ApiError("not_found");
          await transaction`
            update call
            set state = 'ended', ended_at = ${now()}, duration_ms = ${body.end.duration_ms},
                end_reason = ${body.end.reason}, error_code = ${body.end.error_code ?? null}
            where id = ${params.call_id} and state = 'in_progress' and gateway_id = ${body.gateway_id}`;
          await writeProgress(transaction, await ownReports(transaction, body.gateway_id, reports));
          await countCalls(transaction, [params.call_id], now());
          await noteTracesDue(transaction, "call", [params.call_id]);
        });
      },
    }),
  ];
}

async function callsOverLimit(sql: AnySql, callIds: readonly string[], now: Date): Promise<string[]> {
  const calls = await sql<{ id: string; organizationId: string; subjectId: string }[]>`
    select id, organization_id as "organizationId", agent_id as "subjectId" from call
    where id in (select value::uuid from json_array_elements_text(${json(sql, callIds)}))
      and organization_id in (select organization_id from usage_limit where at_limit = 'end')`;
  return (await endedByLimit(sql, calls, now)).map(({ id }) => id);
}

interface OpenedRow {
  /** Null: a draft session, which runs on a configuration of its own. */
  agent_id: string | null;
  organization_id: string;
  project_id: string;
  config: VoiceAgentConfig;
  header_secrets: Buffer | null;
  config_overrides: VoiceAgentConfig;
  variables: Variables;
  input_format: AudioFormat;
  output_format: AudioFormat;
  client_buffer_ms: number;
  initial_messages: { role: "user" | "agent"; text: string }[];
}

/** One conditional update: of any number of racing gateways one opens. @throws ApiError as the contract says */
async function openCall(sql: AnySql, callId: string, gatewayId: string, now: Date): Promise<OpenedRow> {
  const [reserved] = await sql<{ organizationId: string; subjectId: string }[]>`
    select organization_id as "organizationId", agent_id as "subjectId" from call
    where id = ${callId} and state = 'reserved' and exists (
      select 1 from usage_limit where usage_limit.organization_id = call.organization_id)`;
  if (reserved) await requireUnderLimit(sql, reserved, now);
  const [call] = await sql<OpenedRow[]>`
    update call
    set state = 'in_progress', gateway_id = ${gatewayId}, started_at = ${now}, heartbeat_at = ${now}
    from (
      select ${callId}::uuid as call_id, agent.id, agent.config, agent.header_secrets, agent.deleted_at
      from call left join voice_agent agent on agent.id = call.agent_id where call.id = ${callId}
    ) as agent
    where call.id = agent.call_id and call.state = 'reserved' and call.expires_at > ${now}
      and agent.deleted_at is null
    returning call.agent_id, call.organization_id, call.project_id,
              coalesce(call.inline_config, agent.config) as config,
              coalesce(call.header_secrets, agent.header_secrets) as header_secrets, call.config_overrides, call.variables,
              call.input_format, call.output_format, call.client_buffer_ms, call.initial_messages`;
  if (call) return call;
  const [refused] = await sql<{ state: string; is_archived: boolean }[]>`
    select call.state, agent.deleted_at is not null as is_archived
    from call left join voice_agent agent on agent.id = call.agent_id where call.id = ${callId}`;
  if (!refused) throw new ApiError("not_found");
  if (refused.state !== "reserved" && refused.state !== "expired") throw new ApiError("conflict");
  // The gateway tells its caller `expired` or `gone` by this detail.
  throw new ApiError("gone", { details: refused.is_archived ? { agent_id: "archived" } : { call_id: "expired" } });
}

/** `since` moves to now when the gateway was silent for so long that its calls may have been given up. */
async function beatGateway(sql: AnySql, gatewayId: string, now: Date): Promise<void> {
  const lostBefore = new Date(now.getTime() - heartbeatLostS * 1000);
  await sql`
    insert into gateway_heartbeat (gateway_id, since, heartbeat_at) values (${gatewayId}, ${now}, ${now})
    on conflict (gateway_id) do update
    set since = case when gateway_heartbeat.heartbeat_at < ${lostBefore} then excluded.since
                     else gateway_heartbeat.since end,
        heartbeat_at = excluded.heartbeat_at`;
}

/** Beats the calls that are in progress here, and answers their ids. Locks in order of id, as every bulk update of calls. */
async function beatCalls(sql: AnySql, gatewayId: string, callIds: readonly string[], now: Date): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with alive as (
      select id from call
      where id in (select value::uuid from json_array_elements_text(${json(sql, callIds)}))
        and state = 'in_progress' and gateway_id = ${gatewayId}
      order by id for update
    )
    update call set heartbeat_at = ${now} from alive where call.id = alive.id returning call.id`;
  return rows.map((row) => row.id);
}

/** The reports of calls that this gateway opened, whatever became of them. */
async function ownReports(sql: AnySql, gatewayId: string, reports: readonly CallProgress[]): Promise<CallProgress[]> {
  const grown = reports.filter(
    ({ items, turns, events, tools, requests, usage }) =>
      items.length + turns.length + (events?.length ?? 0) + (requests?.length ?? 0) + (tools?.length ?? 0) > 0 || usage,
  );
  if (grown.length === 0) return [];
  const rows = await sql<{ id: string }[]>`
    select id from call
    where id in (select value::uuid from json_array_elements_text(${json(
      sql,
      grown.map((report) => report.call_id),
    )}))
      and gateway_id = ${gatewayId}`;
  const own = new Set(rows.map((row) => row.id));
  return grown.filter((report) => own.has(report.call_id));
}
