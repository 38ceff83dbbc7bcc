/** Traces of runs, made of their rows and logs. */
import type { RunEvent } from "#contracts/run_event.ts";
import type { Sql } from "#store/sql.ts";
import type { KnownRecords, MakeTraces } from "#traces/trace_due.ts";
import { type EndedRun, RunSpans } from "./run_spans.ts";

const eventsAtOnce = 500;

export function runTraces(sql: Sql): MakeTraces {
  return async (runIds) => {
    const runs = await sql<EndedRun[]>`
      select run.id, run.trace_id, run.organization_id, run.project_id, run.app_id, app.name as app_name,
             run.workflow_version_id, run.status, run.input, run.output, run.error, run.usage, run.metadata,
             run.session_id, run.user_id, run.caller_span, run.created_at, run.ended_at, run.active_ms
      from run join app on app.id = run.app_id
      where run.id = any (${runIds}::uuid[]) and run.ended_at is not null`;
    const made = new Map(runs.map((run) => [run.id, new RunSpans(run)]));
    const events = sql<{ body: string }[]>`
      select body from run_event
      where run_id = any (${[...made.keys()]}::uuid[]) and type not in ('content.delta', 'node.progress')
      order by run_id, id`.cursor(eventsAtOnce);
    for await (const rows of events) {
      for (const { body } of rows) {
        const event = JSON.parse(body) as RunEvent;
        made.get(event.run_id)?.take(event);
      }
    }
    return [...made.values()].map((run) => run.trace());
  };
}

export function knownRuns(sql: Sql): KnownRecords {
  return (runIds) => sql`select id from run where id = any (${runIds}::uuid[])`;
}
