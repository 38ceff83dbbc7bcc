/** Deletes credentials that ran out long ago: nothing authenticates by them, nobody looks for them. */
import type { Sql } from "#store/sql.ts";
import { purgeSignIns } from "./attempt_limits.ts";

const keptForMs = 30 * 24 * 60 * 60 * 1000;

export async function purgeExpiredCredentials({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  const before = new Date(now().getTime() - keptForMs);
  await sql`delete from sign_in_link where expires_at < ${before}`;
  await sql`delete from personal_access_token where expires_at < ${before}`;
  await sql`delete from account_token where expires_at < ${before}`;
  await purgeSignIns(sql, now());
}
