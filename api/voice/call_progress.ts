/** Writes what gateways report of their calls: the transcript, the turns, the tools, the requests to models, what went wrong, the usage. */
import type { CallProgress } from "#contracts/call_record.ts";
import { type AnySql, json } from "#store/sql.ts";

/**
 * Upserts the items, turns, tools and requests of any number of calls in a few statements, however many there are.
 * A later report of the same item or turn replaces the earlier one.
 */
export async function writeProgress(sql: AnySql, reports: readonly CallProgress[]): Promise<void> {
  const items = newest(
    reports.flatMap((report) => report.items.map((item) => ({ ...item, call_id: report.call_id }))),
    "item_id",
  );
  const turns = newest(
    reports.flatMap((report) =>
      report.turns.map((metrics) => ({ call_id: report.call_id, turn_id: metrics.turn_id, metrics })),
    ),
    "turn_id",
  );
  const events = newest(
    reports.flatMap((report) => (report.events ?? []).map((event) => ({ ...event, call_id: report.call_id }))),
    "event_id",
  );
  const tools = newest(
    reports.flatMap((report) => (report.tools ?? []).map((tool) => ({ ...tool, call_id: report.call_id }))),
    "tool_call_id",
  );
  const requests = newest(
    reports.flatMap((report) =>
      (report.requests ?? []).map((request) => ({
        call_id: report.call_id,
        request_id: request.request_id,
        request,
      })),
    ),
    "request_id",
  );
  const usages = reports.flatMap(({ call_id, usage }) => (usage ? [{ call_id, usage }] : []));
  if (items.length > 0) {
    await sql`
      insert into call_item
        (call_id, item_id, turn_id, role, text, heard_text, interrupted, backchannel, heard_basis, start_ms, end_ms)
      select call_id, item_id, turn_id, role, text, heard_text, interrupted, coalesce(backchannel, false), heard_basis,
        start_ms, end_ms
      from json_to_recordset(${json(sql, items)}) as reported(
        call_id uuid, item_id text, turn_id text, role text, text text, heard_text text, interrupted boolean,
        backchannel boolean, heard_basis text, start_ms double precision, end_ms double precision)
      on conflict (call_id, item_id) do update
      set turn_id = excluded.turn_id, role = excluded.role, text = excluded.text, heard_text = excluded.heard_text,
          interrupted = excluded.interrupted, backchannel = excluded.backchannel,
          heard_basis = excluded.heard_basis, start_ms = excluded.start_ms, end_ms = excluded.end_ms`;
  }
  if (turns.length > 0) {
    await sql`
      insert into call_turn (call_id, turn_id, metrics)
      select call_id, turn_id, metrics
      from json_to_recordset(${json(sql, turns)}) as reported(call_id uuid, turn_id text, metrics json)
      on conflict (call_id, turn_id) do update set metrics = excluded.metrics`;
  }
  if (events.length > 0) {
    await sql`
      insert into call_event (call_id, event_id, at_ms, type, data)
      select call_id, event_id, at_ms, type, data
      from json_to_recordset(${json(sql, events)}) as reported(
        call_id uuid, event_id text, at_ms double precision, type text, data json)
      on conflict (call_id, event_id) do nothing`;
  }
  if (tools.length > 0) {
    await sql`
      insert into call_tool
        (call_id, tool_call_id, name, source, state, task_id, run_id, arguments, result, error, started_ms, duration_ms)
      select call_id, tool_call_id, name, source, state, task_id, run_id, arguments, result, error, started_ms, duration_ms
      from json_to_recordset(${json(sql, tools)}) as reported(
        call_id uuid, tool_call_id text, name text, source text, state text, task_id text, run_id uuid, arguments json,
        result text, error text, started_ms double precision, duration_ms double precision)
      on conflict (call_id, tool_call_id) do update
      set state = excluded.state, task_id = excluded.task_id, run_id = excluded.run_id, result = excluded.result, error = excluded.error,
          duration_ms = excluded.duration_ms`;
  }
  if (requests.length > 0) {
    await sql`
      insert into call_request (call_id, request_id, request)
      select call_id, request_id, request
      from json_to_recordset(${json(sql, requests)}) as reported(call_id uuid, request_id text, request json)
      on conflict (call_id, request_id) do nothing`;
  }
  if (usages.length > 0) {
    await sql`
      update call set usage = reported.usage
      from json_to_recordset(${json(sql, usages)}) as reported(call_id uuid, usage json)
      where call.id = reported.call_id`;
  }
}

/** The last report of each id, in the order in which the ids first appeared. */
function newest<Row extends { call_id: string }, Key extends keyof Row>(rows: readonly Row[], key: Key): Row[] {
  return [...new Map(rows.map((row) => [`${row.call_id} ${String(row[key])}`, row])).values()];
}
