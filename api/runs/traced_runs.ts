/** Runs as the download of traces shows them, with what their nodes did. */
import type { Sql } from "#store/sql.ts";

/** By id; those that are no more are missing. */
export async function readTracedRuns(sql: Sql, runIds: readonly string[]): Promise<ReadonlyMap<string, object>> {
  if (runIds.length === 0) return new Map();
  const rows = await sql<{ id: string }[]>`
    select id, status, started_at, ended_at, input, output, error, usage,
           coalesce((
             select json_agg(json_build_object('node_id', node_id, 'status', node.status, 'attempt', attempt,
               'started_at', node.started_at, 'ended_at', node.ended_at, 'output', node.output, 'error', node.error,
               'usage', node.usage) order by node.started_at, node.id)
             from node_run node where node.run_id = run.id), '[]'::json) as nodes
    from run where id = any (${runIds}::uuid[])`;
  return new Map(rows.map((run) => [run.id, run]));
}
