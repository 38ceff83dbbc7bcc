/** A run as its clients see it, and its log. */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import type { LoggedEvent, RunEventPage } from "#contracts/internal_runs.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { InputRequest, RunError, RunUsage, runStatuses } from "#contracts/run_event.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import type { AnySql, Sql } from "#store/sql.ts";

const uuid = Type.String({ format: "uuid" });
const anyObject = Type.Record(Type.String(), Type.Unknown());
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

export const Run = named(
  "Run",
  Type.Object({
    id: uuid,
    status: oneOf(runStatuses),
    app_id: uuid,
    workflow_version_id: uuid,
    session_id: nullableText,
    user_id: nullableText,
    trace_id: uuid,
    input: anyObject,
    output: nullable(anyObject),
    error: nullable(RunError),
    usage: nullable(RunUsage),
    metadata: anyObject,
    /** Pending ones. */
    input_requests: Type.Array(InputRequest),
    last_event_id: Type.Integer(),
    created_at: Timestamp,
    started_at: OptionalTimestamp,
    ended_at: OptionalTimestamp,
  }),
  {
    status: "what has become of it",
    session_id: "groups runs; null for none",
    user_id: "the end user, as the caller names them; null where not named",
    trace_id: "id of the trace that it is",
    input: "what it was started with",
    output: "what it answered; null before it succeeded",
    error: "why it failed; null otherwise",
    usage: "what its models used; null before its end",
    metadata: "what the caller keeps with it",
    input_requests: "what it waits for",
    last_event_id: "number of its latest event",
  },
);
export type Run = Static<typeof Run>;

/** A run that still works is reported as `awaiting_input` while somebody's answer is pending. */
export const runColumns = (sql: AnySql) => sql`
  id, case when status in ('pending', 'running') and exists (
    select 1 from input_request where run_id = run.id and input_request.status = 'pending') then 'awaiting_input'
    else status end as status,
  app_id, workflow_version_id, session_id, user_id, trace_id, input, output, error, usage, metadata,
  coalesce((
    select json_agg(json_build_object('id', request.id, 'type', request.type, 'prompt', request.prompt,
      'params', request.params, 'editable_params', request.editable_params, 'audience', request.audience) order by request.created_at, request.id)
    from input_request request where request.run_id = run.id and request.status = 'pending'), '[]'::json) as input_requests,
  last_event_id, created_at, started_at, ended_at`;

/** @throws ApiError not_found for a run of another app */
export async function readRun(sql: Sql, appId: string, runId: string): Promise<Run> {
  const [run] = await sql<Run[]>`select ${runColumns(sql)} from run where id = ${runId} and app_id = ${appId}`;
  if (!run) throw new ApiError("not_found");
  return run;
}

/** One page's events together; a single larger one is a page of its own. */
const pageBytesMax = 1024 * 1024;

/** Events after one, ascending, as many as a page holds. Undefined for a run that does not exist. */
export async function readEvents(
  sql: Sql,
  runId: string,
  { after, limit }: { after: number; limit: number },
): Promise<RunEventPage | undefined> {
  // The events first: what is committed between the two statements is then behind `last_event_id`, not missing.
  const events = await sql<LoggedEvent[]>`
    select id, type, body as json
    from (
      select id, type, body, sum(octet_length(body)) over (order by id) - octet_length(body) as bytes_before
      from (
        select id, type, body from run_event
        where run_id = ${runId} and id > ${after} order by id limit ${limit}) next) page
    where bytes_before < ${pageBytesMax} order by id`;
  const [run] = await sql<Omit<RunEventPage, "events">[]>`
    select status, last_event_id from run where id = ${runId}`;
  return run && { events, ...run };
}
