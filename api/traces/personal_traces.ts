/** Traces of a person: whose `user_id` it is, or whose input, output or spans name the person. */
import { isOf, mentions, type PersonalData } from "#store/personal_data.ts";
import type { AnySql } from "#store/sql.ts";
import type { SpanStore } from "./span_store.ts";

export function personalTraces(store: Pick<SpanStore, "deleteTraces">): PersonalData {
  return {
    kind: "traces",
    find: (own, organizationId, subject) => own`
      select project_id || '/' || id as id from trace
      where organization_id = ${organizationId} and (
        ${isOf(own, subject, own`user_id`)}
        or ${mentions(own, subject, [own`name`, own`input`, own`output`, own`metadata`, own`tags`, own`session_id`])}
        or (project_id, id) in (
          select project_id, trace_id from span
          where project_id in (select id from project where organization_id = ${organizationId})
            and (${mentions(own, subject, [
              own`name`,
              own`status_message`,
              own`input`,
              own`output`,
              own`attributes`,
              own`events`,
              own`links`,
            ])})))`,
    read: (own, ids) => own`
      select id, project_id, app_id, source, name, status, started_at, ended_at, session_id, user_id, input, output, metadata,
             (select json_agg(json_build_object('name', span.name, 'kind', kind, 'started_at', span.started_at,
                'input', span.input, 'output', span.output, 'attributes', attributes) order by span.started_at)
              from span where span.project_id = trace.project_id and span.trace_id = trace.id) as spans
      from trace where ${keysOf(own, ids)} order by started_at, id`,
    async erase(ids) {
      for (const [projectId, traceIds] of byProject(ids)) await store.deleteTraces({ projectId }, traceIds);
    },
  };
}

/** The primary key, so that nothing has to be searched. */
const keysOf = (sql: AnySql, ids: readonly string[]) => {
  const keys = ids.map((id) => id.split("/"));
  return sql`(project_id, id) in (
    select * from unnest(${keys.map(([projectId = ""]) => projectId)}::uuid[], ${keys.map(([, id = ""]) => id)}::uuid[]))`;
};

function byProject(ids: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const key of ids) {
    const [projectId = "", id = ""] = key.split("/");
    found.set(projectId, [...(found.get(projectId) ?? []), id]);
  }
  return found;
}
