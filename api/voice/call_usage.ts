/** Brings what calls have used since they were last counted into the sums of their organizations. */
import { type AnySql, json } from "#store/sql.ts";
import { addUses, type Use } from "#usage/usage_days.ts";

/**
 * In the transaction that wrote what they used, and holds their rows. A call is as long as it has been
 * reported, until its end says how long it was.
 */
export async function countCalls(sql: AnySql, callIds: readonly string[], now: Date): Promise<void> {
  if (callIds.length === 0) return;
  const uses = await sql<Use[]>`
    with grown as (
      select id,
             round(coalesce(duration_ms, extract(epoch from heartbeat_at - started_at) * 1000))::bigint - counted_ms as ms,
             coalesce((usage -> 'cost' ->> 'known')::numeric, 0) - counted_cost as cost,
             usage -> 'cost' is not null and usage -> 'cost' ->> 'amount' is null as has_unknown_cost
      from call where started_at is not null
        and id in (select value::uuid from json_array_elements_text(${json(sql, callIds)}))
      order by id for update
    )
    update call set counted_ms = counted_ms + grown.ms, counted_cost = counted_cost + grown.cost
    from grown where call.id = grown.id
    returning call.organization_id, 'agent' as kind, call.agent_id as subject_id, grown.ms::float8 as call_ms,
              grown.cost::text as cost, grown.has_unknown_cost`;
  await addUses(sql, uses, now);
}
