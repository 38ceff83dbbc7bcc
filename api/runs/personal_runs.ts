/** Runs of a person: whose `user_id` it is, or whose input, output or log names the person. */
import { isOf, mentions, type PersonalData } from "#store/personal_data.ts";
import type { Sql } from "#store/sql.ts";
import { cancelRuns } from "./run_cancel.ts";

export function personalRuns(sql: Sql, now: () => Date): PersonalData {
  return {
    kind: "runs",
    find: (own, organizationId, subject) => own`
      select run.id from run
      where run.organization_id = ${organizationId} and (
        ${isOf(own, subject, own`run.user_id`)}
        or ${mentions(own, subject, [own`run.input`, own`run.output`, own`run.error`, own`run.metadata`, own`run.session_id`])}
        or exists (select from run_event where run_id = run.id and (${mentions(own, subject, [own`body`])}))
        or exists (select from node_run where run_id = run.id and (${mentions(own, subject, [own`output`])}))
        or exists (
          select from input_request where run_id = run.id
            and (${mentions(own, subject, [own`prompt`, own`params`, own`response`])}))
        or exists (select from callback where run_id = run.id and (${mentions(own, subject, [own`url`, own`metadata`])})))`,
    read: (own, ids) => own`
      select id, app_id, status, created_at, ended_at, session_id, user_id, input, output, error, metadata,
             (select json_agg(body::json order by run_event.id) from run_event
              where run_id = run.id and type <> 'content.delta') as events
      from run where id = any (${ids}::uuid[]) order by created_at, id`,
    async erase(ids) {
      const these = sql`id = any (${ids}::uuid[])`;
      await sql.begin((transaction) => cancelRuns(transaction, these, { reason: "A person's data is erased" }, now()));
      await sql`delete from run where ${these} and ended_at is not null`;
    },
  };
}
