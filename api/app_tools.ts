/**
 * Apps as tools of a call: `POST /internal/calls/{call_id}/runs` starts a run, once for each call of the tool.
 * A call runs what its agent names, of its own project, and follows and cancels what it has started.
 */

import { Type } from "@sinclair/typebox";
import { findCalledApp } from "#apps/hosted_app.ts";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { RunEventPage } from "#contracts/internal_runs.ts";
import { named } from "#contracts/named_schema.ts";
import { isTerminal } from "#contracts/run_event.ts";
import type { AppTool } from "#contracts/voice_agent.ts";
import type { SchemaNode, WorkflowDefinition } from "#contracts/workflow.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { cancelRuns } from "#runs/run_cancel.ts";
import { createRun } from "#runs/run_creation.ts";
import { publishCanceled } from "#runs/run_news.ts";
import { readEvents } from "#runs/run_reader.ts";
import { lookUntil } from "#runs/run_wait.ts";
import type { AnySql, Fragment, Sql } from "#store/sql.ts";
import type { AppInputs } from "#voice/app_inputs.ts";
import { callInProgress } from "#voice/call_rows.ts";
import { jsonSchemaOf } from "#workflows/schema_node.ts";

/** How long who follows a run waits for its next event. */
const newsWaitMs = 20_000;
const eventsInPageMax = 1000;
/** Runs that one round cancels. */
const canceledMax = 200;

interface AppToolDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
}

const AppRunStart = named(
  "AppRunStart",
  Type.Object({
    app_id: Type.String({ format: "uuid" }),
    tool_call_id: Type.String({ minLength: 1, maxLength: 200 }),
    input: Type.Record(Type.String(), Type.Unknown()),
  }),
  { tool_call_id: "the model's id of the call: the same again is the same run", input: "what the model gave" },
);
const AppRunStarted = named(
  "AppRunStarted",
  Type.Object({
    run_id: Type.Optional(Type.String({ format: "uuid" })),
    error: Type.Optional(Type.String()),
  }),
  { run_id: "the run, which is under way", error: "why there is none, in words for the model" },
);

export function appToolRoutes(deps: AppToolDeps & { internal: Guard<undefined> }): Route[] {
  const { sql, bus, internal: guard } = deps;
  return [
    route({
      method: "POST",
      path: "/internal/calls/{call_id}/runs",
      summary: "Run an app for a call in progress, once for each call of the tool",
      guard,
      body: AppRunStart,
      reply: { status: 200, body: AppRunStarted },
      handle: async ({ params, body }) => {
        const call = await callInProgress<Calling>(sql, params.call_id, callingColumns(sql));
        const tool = (call.app_tools ?? []).find(({ app_id }) => app_id.toLowerCase() === body.app_id.toLowerCase());
        if (!tool) throw new ApiError("not_found", { details: { app_id: "Expected an app of the call's agent" } });
        return start(deps, call, tool, body);
      },
    }),
    route({
      method: "GET",
      path: "/internal/calls/{call_id}/runs/{run_id}/events",
      waitsMs: newsWaitMs,
      summary: "Events of a call's run after one, as soon as there are any",
      guard,
      query: { after: Type.Integer({ minimum: 0 }) },
      reply: { status: 200, body: named("CallRunEvents", RunEventPage) },
      handle: async ({ params, query, request }) => {
        const { call_id, run_id } = params;
        await requireOwnRun(sql, call_id, run_id);
        const page = await lookUntil(bus, {
          runId: run_id,
          waitMs: newsWaitMs,
          signal: request.signal,
          look: () => readEvents(sql, run_id, { after: query.after, limit: eventsInPageMax }),
          isEnough: (found) => !found || found.events.length > 0 || isTerminal(found.status),
        });
        if (!page) throw new ApiError("not_found");
        return page;
      },
    }),
    route({
      method: "POST",
      path: "/internal/calls/{call_id}/runs/{run_id}/cancel",
      summary: "Cancel a call's run; one that is over stays as it is",
      guard,
      reply: { status: 204 },
      handle: async ({ params: { call_id, run_id } }) => {
        await requireOwnRun(sql, call_id, run_id);
        await cancel(deps, sql`id = ${run_id}`);
        return {};
      },
    }),
  ];
}

interface Calling {
  id: string;
  project_id: string;
  app_tools: AppTool[] | null;
}

const callingColumns = (sql: AnySql) =>
  sql`call.id, call.project_id, coalesce(call.inline_config, agent.config) -> 'app_tools' as app_tools`;

async function start(
  deps: AppToolDeps,
  call: Calling,
  tool: AppTool,
  { tool_call_id, input }: { tool_call_id: string; input: Record<string, unknown> },
): Promise<{ run_id: string } | { error: string }> {
  const { sql, now } = deps;
  const [before] = await sql<{ run_id: string }[]>`
    select run_id from call_run where call_id = ${call.id} and tool_call_id = ${tool_call_id}`;
  if (before) return before;
  try {
    const app = await findCalledApp(sql, call.project_id, tool.app_id, now());
    const { id } = await createRun(deps, app, {
      origin: "run",
      input,
      metadata: { call_id: call.id, tool_call_id },
      // Two who ask at once, or one who asks again because the answer was lost, get one run.
      idempotencyKey: `call:${call.id}:${tool_call_id}`,
    });
    await sql`
      insert into call_run (call_id, tool_call_id, run_id, ends_with_call)
      values (${call.id}, ${tool_call_id}, ${id}, ${tool.on_call_end === "cancel"})
      on conflict (call_id, tool_call_id) do nothing`;
    return { run_id: id };
  } catch (error) {
    const words = error instanceof ApiError ? inWords(error) : undefined;
    if (words === undefined) throw error;
    return { error: words };
  }
}

/** Why there is no run, for the model; undefined where that is a fault of ours. */
function inWords({ code, details = {} }: ApiError): string | undefined {
  const fields = Object.entries(details).map(([field, problem]) => `${field}: ${String(problem)}`);
  if (code === "bad_request") return `invalid_arguments: ${fields.join("; ")}`;
  if (code === "payload_too_large") return "invalid_arguments: too large";
  if (code === "too_many_requests") return "Too much is under way at the moment: try again later";
  if (code === "not_found") return "This is not available any more";
  return undefined;
}

async function requireOwnRun(sql: AnySql, callId: string, runId: string): Promise<void> {
  const own = await sql`select 1 from call_run where call_id = ${callId} and run_id = ${runId}`;
  if (own.length === 0) throw new ApiError("not_found");
}

async function cancel({ sql, bus, now }: AppToolDeps, where: Fragment): Promise<void> {
  const by = { reason: "The call no longer waits for it" };
  const canceled = await sql.begin((transaction) => cancelRuns(transaction, where, by, now()));
  publishCanceled(bus, canceled);
}

/** Cancels the runs that end with their calls, whose calls are over: also where a gateway died with them. @returns how many */
export async function cancelRunsOfEndedCalls({ sql, bus, now }: AppToolDeps): Promise<number> {
  const canceled = await sql.begin(async (transaction) => {
    const ending = await transaction<{ run_id: string }[]>`
      update call_run set ends_with_call = false
      where (call_id, tool_call_id) in (
        select call_run.call_id, call_run.tool_call_id
        from call_run join call on call.id = call_run.call_id
        where call_run.ends_with_call and call.state = 'ended'
        limit ${canceledMax} for update of call_run skip locked)
      returning run_id`;
    const ids = ending.map(({ run_id }) => run_id);
    return cancelRuns(transaction, transaction`id = any (${ids}::uuid[])`, { reason: "The call is over" }, now());
  });
  publishCanceled(bus, canceled);
  return canceled.marked.length + canceled.ended.length;
}

/** Of the apps as they are deployed now. */
export function openAppInputs(sql: AnySql): AppInputs {
  return async (projectId, appIds) => {
    if (appIds.length === 0) return new Map();
    const rows = await sql<{ id: string; input: WorkflowDefinition["input"] }[]>`
      select app.id, version.definition -> 'input' as input
      from app join workflow_version version on version.id = app.workflow_version_id
      where app.project_id = ${projectId} and app.id = any (${[...appIds]}::uuid[])`;
    const byId = new Map(rows.map(({ id, input }) => [id, schemaOf(input)]));
    return new Map(
      appIds.flatMap((given): [string, Record<string, unknown>][] => {
        const schema = byId.get(given.toLowerCase());
        return schema ? [[given, schema]] : [];
      }),
    );
  };
}

/** As models' vendors take a tool's parameters: an object, whatever the workflow takes. */
function schemaOf(input: SchemaNode | null | undefined): Record<string, unknown> {
  return input?.type === "object" ? jsonSchemaOf(input) : { type: "object", properties: {} };
}
