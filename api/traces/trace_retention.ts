/** How long traces are kept: as long as their project says, and never longer than what they are the record of. */
import { purgeInPortions } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";
import { dropSpanDays, makeDaysAhead } from "./span_days.ts";

/**
 * Makes the days to come, deletes the traces that are over, and drops the days that no project keeps: spans go
 * a day at a time, in a moment.
 */
export async function purgeTraces(sql: Sql, now: Date): Promise<void> {
  await makeDaysAhead(sql, now);
  await deleteOver(sql, now);
  const [longest] = await sql<{ days: number | null }[]>`select max(trace_retention_days) as days from project`;
  const keptDays = longest?.days ?? 0;
  await dropSpanDays(sql, new Date(now.getTime() - keptDays * 24 * 60 * 60 * 1000));
}

async function deleteOver(sql: Sql, now: Date): Promise<void> {
  await purgeInPortions(
    (rowsMax) => sql`
      with over as (
        select trace.project_id, trace.id
        from (
          select project.id as project_id, app.id as app_id, source.name as source,
                 ${now}::timestamptz - make_interval(days => least(
                   project.trace_retention_days,
                   case when source.name = 'run' then coalesce((app.policy ->> 'retention_days')::integer, 30) end,
                   case when source.name = 'call' then organization.call_retention_days end)) as before
          from project
          join organization on organization.id = project.organization_id
          cross join (values ('run'), ('call'), ('otlp')) source (name)
          left join app on app.project_id = project.id and source.name = 'run') kept
        cross join lateral (
          select project_id, id from trace
          where project_id = kept.project_id and source = kept.source and started_at < kept.before
            and (kept.app_id is null or app_id = kept.app_id)
          order by started_at limit ${rowsMax} for update skip locked) trace
        limit ${rowsMax}),
      spans as (
        delete from span using over where span.project_id = over.project_id and span.trace_id = over.id)
      delete from trace using over where trace.project_id = over.project_id and trace.id = over.id`,
  );
  await purgeInPortions(
    (rowsMax) => sql`
      delete from trace_session
      where ctid = any (array(
        select session.ctid from trace_session session
        where not exists (
          select from trace
          where trace.project_id = session.project_id and trace.session_id = session.id
            and trace.app_id is not distinct from session.app_id)
        limit ${rowsMax}))`,
  );
}
