/** Deletes credentials that ran out long ago: nothing authenticates by them, nobody looks for them. */
import { purgeBefore } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";
import { purgeSignIns } from "./attempt_limits.ts";

const keptForMs = 30 * 24 * 60 * 60 * 1000;

export async function purgeExpiredCredentials({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  const before = new Date(now().getTime() - keptForMs);
  await purgeBefore(sql, { table: "sign_in_link", column: "expires_at" }, before);
  await purgeBefore(sql, { table: "personal_access_token", column: "expires_at" }, before);
  await purgeSignIns(sql, now());
}
