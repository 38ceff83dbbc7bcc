/**
 * What an organization used each day: minutes of calls, and what models cost in calls and runs, in sum and
 * by voice agent and app. A day is one of UTC; what is counted belongs to the day in which it is counted,
 * for a call that goes on every five seconds.
 *
 * Each use is added in the transaction that notes it in the call or the run, so that it is counted once. All
 * of an organization's meet in the row of its sum: of two that cross a ceiling at once, the later one sees it.
 */
import { type AnySql, json } from "#store/sql.ts";
import { dayOf, type SubjectKind } from "./day.ts";
import { noticeReached } from "./limit_notices.ts";

export interface Use {
  organization_id: string;
  kind: Exclude<SubjectKind, "organization">;
  /** Null: of the organization alone, as a draft session is. */
  subject_id: string | null;
  call_ms: number;
  /** In the price table's currency; what is known of it. A decimal number. */
  cost: string;
  has_unknown_cost: boolean;
}

/** Adds to the sums, and has those told whose ceiling that reaches. In the transaction that noted the uses. */
export async function addUses(sql: AnySql, uses: readonly Use[], now: Date): Promise<void> {
  const grown = uses.filter((use) => use.call_ms !== 0 || Number(use.cost) !== 0 || use.has_unknown_cost);
  if (grown.length === 0) return;
  // In one order, so that two transactions never wait for each other.
  const organizations = await sql<{ organization_id: string }[]>`
    with used as (
      select * from json_to_recordset(${json(sql, grown)}) as used(
        organization_id uuid, kind text, subject_id uuid, call_ms bigint, cost numeric, has_unknown_cost boolean)
    ), both_sums as (
      select organization_id, 'organization' as kind, organization_id as subject_id, call_ms, cost, has_unknown_cost from used
      union all
      select organization_id, kind, subject_id, call_ms, cost, has_unknown_cost from used where subject_id is not null
    )
    insert into usage_day (organization_id, day, kind, subject_id, call_ms, cost, has_unknown_cost)
    select organization_id, ${dayOf(now)}::date, kind, subject_id, sum(call_ms), sum(cost), bool_or(has_unknown_cost)
    from both_sums group by organization_id, kind, subject_id order by organization_id, subject_id
    on conflict on constraint usage_day_subject_key do update
    set call_ms = usage_day.call_ms + excluded.call_ms, cost = usage_day.cost + excluded.cost,
        has_unknown_cost = usage_day.has_unknown_cost or excluded.has_unknown_cost
    returning organization_id`;
  await noticeReached(sql, [...new Set(organizations.map((row) => row.organization_id))], now);
}
