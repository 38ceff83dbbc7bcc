/**
 * Deleting what was kept long enough, a portion at a time: no statement takes long, none holds a lock
 * that others wait for, and what a restart cuts off the next round goes on with.
 */
import type { Sql } from "./sql.ts";

export const portionRows = 1000;
/** A round ends after this, however much is left: the next one goes on. Well below what the job queue takes for stuck. */
const roundMsMax = 60_000;

/**
 * Deletes portion after portion until one is not full, or the round has taken long enough.
 * @param remove deletes at most so many rows
 * @returns how many were deleted
 */
export async function purgeInPortions(remove: (rowsMax: number) => PromiseLike<{ count: number }>): Promise<number> {
  const endsAtMs = performance.now() + roundMsMax;
  for (let total = 0; ; ) {
    const { count } = await remove(portionRows);
    total += count;
    if (count < portionRows || performance.now() >= endsAtMs) return total;
  }
}

/** Deletes the rows of `table` whose `column` is a time before `before`. */
export function purgeBefore(sql: Sql, where: { table: string; column: string }, before: Date): Promise<number> {
  const table = sql(where.table);
  return purgeInPortions(
    (rowsMax) => sql`
      delete from ${table}
      where ctid = any (array(select ctid from ${table} where ${sql(where.column)} < ${before} limit ${rowsMax}))`,
  );
}
