/**
 * The days of `span`: one partition for each day (UTC) in which a span began. Whoever writes makes the day that
 * is missing; workers make tomorrow's ahead and drop those that nobody keeps any more.
 */
import { isLockedOut, type Sql } from "#store/sql.ts";

const dayMs = 24 * 60 * 60 * 1000;
/** Days that are there before their first span comes. */
const daysAhead = 2;
const lockName = "span_days";

/** `2026-11-22`, in UTC. */
export const dayOf = (at: Date) => at.toISOString().slice(0, 10);

const tableOf = (day: string) => `span_${day.replaceAll("-", "")}`;

/** Makes these days where they are missing. Safe from many processes at once. */
export async function makeSpanDays(sql: Sql, days: readonly string[]): Promise<void> {
  for (const day of days) {
    const table = `span_day.${tableOf(day)}`;
    const until = dayOf(new Date(Date.parse(day) + dayMs));
    await sql.begin(async (transaction) => {
      await transaction`select pg_advisory_xact_lock(hashtextextended(${lockName}, 0))`;
      const [found] = await transaction`select 1 where to_regclass(${table}) is not null`;
      if (found) return;
      // Made aside and attached: a partition that is made in place would lock out all who read and write.
      await transaction.unsafe(`create table ${table} (like span including all)`);
      await transaction.unsafe(
        `alter table span attach partition ${table} for values from ('${day} 00:00:00+00') to ('${until} 00:00:00+00')`,
      );
    });
  }
}

/** Today and the days to come. */
export function makeDaysAhead(sql: Sql, now: Date): Promise<void> {
  const days = Array.from({ length: daysAhead + 1 }, (_, ahead) => dayOf(new Date(now.getTime() + ahead * dayMs)));
  return makeSpanDays(sql, days);
}

/** The days that are there, the oldest first. */
export async function spanDays(sql: Sql): Promise<string[]> {
  const rows = await sql<{ day: string }[]>`
    select to_char(to_date(right(child.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day
    from pg_inherits join pg_class child on child.oid = inhrelid
    where inhparent = 'public.span'::regclass order by 1`;
  return rows.map(({ day }) => day);
}

/**
 * Drops the days that end before `before`, each in a moment, however many spans it has. One that is being read
 * is left to the next round.
 */
export async function dropSpanDays(sql: Sql, before: Date): Promise<number> {
  const over = (await spanDays(sql)).filter((day) => Date.parse(day) + dayMs <= before.getTime());
  let dropped = 0;
  for (const day of over) {
    try {
      await sql.unsafe(`drop table if exists span_day.${tableOf(day)}`);
      dropped += 1;
    } catch (error) {
      if (!isLockedOut(error)) throw error;
    }
  }
  return dropped;
}
