/** Whether a request shows an API key that lives. Asked where a key does not count, to say so rightly. */
import type { AnySql } from "#store/sql.ts";
import { isApiKey } from "./api_key_format.ts";
import { sha256Hex } from "./secret.ts";

export async function showsLivingApiKey(sql: AnySql, request: Request): Promise<boolean> {
  const key = request.headers.get("x-api-key")?.trim();
  if (!key || !isApiKey(key)) return false;
  const rows = await sql`select 1 from api_key where secret_sha256 = ${sha256Hex(key)} and revoked_at is null`;
  return rows.length > 0;
}
