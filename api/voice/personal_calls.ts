/** Calls of a person: whose `metadata.user_id` it is, or in which the person is named. */
import { isOf, mentions, type PersonalData } from "#store/personal_data.ts";
import type { Sql } from "#store/sql.ts";

export function personalCalls(sql: Sql): PersonalData {
  return {
    kind: "calls",
    find: (own, organizationId, subject) => own`
      select call.id from call
      where call.organization_id = ${organizationId} and (
        ${isOf(own, subject, own`call.metadata ->> 'user_id'`)}
        or ${mentions(own, subject, [
          own`call.metadata`,
          own`call.variables`,
          own`call.config_overrides`,
          own`call.initial_messages`,
          own`call.inline_config`,
          own`call.quoted_stay`,
          own`call.room_name`,
        ])}
        or exists (select from call_item where call_id = call.id and (${mentions(own, subject, [own`text`, own`heard_text`])}))
        or exists (
          select from call_tool where call_id = call.id
            and (${mentions(own, subject, [own`arguments`, own`result`, own`error`])}))
        or exists (select from call_event where call_id = call.id and (${mentions(own, subject, [own`data`])})))`,
    read: (own, ids) => own`
      select id, agent_id, state, created_at, started_at, ended_at, metadata, variables, initial_messages,
             (select json_agg(json_build_object('role', role, 'text', text, 'heard_text', heard_text, 'start_ms', start_ms)
                order by position) from call_item where call_id = call.id) as transcript,
             (select json_agg(json_build_object('name', name, 'arguments', arguments, 'result', result, 'error', error)
                order by position) from call_tool where call_id = call.id) as tools
      from call where id = any (${ids}::uuid[]) order by created_at, id`,
    async erase(ids) {
      await sql`delete from call where id = any (${ids}::uuid[]) and state in ('ended', 'expired')`;
    },
  };
}
