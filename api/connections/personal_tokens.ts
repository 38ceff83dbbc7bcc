/** Connect tokens of a person. */
import { isOf, type PersonalData } from "#store/personal_data.ts";
import type { Sql } from "#store/sql.ts";

export function personalConnectTokens(sql: Sql): PersonalData {
  return {
    kind: "connect_tokens",
    find: (own, organizationId, subject) => own`
      select id from connect_token where organization_id = ${organizationId} and ${isOf(own, subject, own`user_id`)}`,
    read: (own, ids) => own`
      select id, app_id, user_id, created_at, expires_at from connect_token where id = any (${ids}::uuid[])`,
    async erase(ids) {
      await sql`delete from connect_token where id = any (${ids}::uuid[])`;
    },
  };
}
