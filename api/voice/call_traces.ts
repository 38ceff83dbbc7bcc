/** Traces of calls, made of their records. */
import type { Sql } from "#store/sql.ts";
import type { KnownRecords, MakeTraces } from "#traces/trace_due.ts";
import { callTrace, type RecordedCall } from "./call_spans.ts";

/** What a call's lists are read as, in the call's own row. */
const lists = {
  transcript: {
    fields: "item_id, turn_id, role, text, heard_text, interrupted, backchannel, start_ms, end_ms",
    from: "call_item",
    order: "start_ms, position",
  },
  tools: {
    fields: "tool_call_id, name, source, state, run_id, arguments, result, error, started_ms, duration_ms",
    from: "call_tool",
    order: "position",
  },
  events: { fields: "event_id, at_ms, type, data", from: "call_event", order: "position" },
} as const;

export function callTraces(sql: Sql): MakeTraces {
  const listOf = ({ fields, from, order }: (typeof lists)[keyof typeof lists]) => sql`
    coalesce((
      select json_agg(entry)
      from (select ${sql.unsafe(fields)} from ${sql(from)} where call_id = call.id order by ${sql.unsafe(order)}) entry), '[]')`;
  return async (callIds) => {
    const calls = await sql<RecordedCall[]>`
      select call.id, call.organization_id, call.project_id, call.agent_id, agent.name as agent_name, call.transport,
             call.metadata, call.started_at, call.duration_ms, call.end_reason, call.error_code, call.usage,
             ${listOf(lists.transcript)} as transcript, ${listOf(lists.tools)} as tools,
             ${listOf(lists.events)} as events,
             coalesce((select json_agg(metrics order by position) from call_turn where call_id = call.id), '[]') as turns,
             coalesce((
               select json_agg(request order by position) from call_request where call_id = call.id), '[]') as requests
      from call left join voice_agent agent on agent.id = call.agent_id
      where call.id = any (${callIds}::uuid[]) and call.state = 'ended' and call.started_at is not null`;
    return calls.map(callTrace);
  };
}

export function knownCalls(sql: Sql): KnownRecords {
  return (callIds) => sql`select id from call where id = any (${callIds}::uuid[])`;
}
