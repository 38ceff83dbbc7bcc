/** Brings what runs have cost since they were last counted into the sums of their organizations. */
import type { AnySql } from "#store/sql.ts";
import { addUses, type Use } from "#usage/usage_days.ts";

/** In the transaction that wrote what they used, and holds their rows: when they end or wait. */
export async function countRuns(sql: AnySql, runIds: readonly string[], now: Date): Promise<void> {
  if (runIds.length === 0) return;
  const uses = await sql<Use[]>`
    with grown as (
      select id, coalesce((usage -> 'cost' ->> 'known')::numeric, 0) - counted_cost as cost,
             usage -> 'cost' ->> 'amount' is null as has_unknown_cost
      from run where id = any (${[...runIds]}::uuid[])
    )
    update run set counted_cost = counted_cost + grown.cost from grown where run.id = grown.id
    returning run.organization_id, 'app' as kind, run.app_id as subject_id, 0 as call_ms, grown.cost::text as cost,
              grown.has_unknown_cost`;
  await addUses(sql, uses, now);
}
