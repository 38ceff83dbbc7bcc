/** What accounts keep of a person: invitations, the request log, and the person's own account. */
import { mentions, type PersonalData } from "#store/personal_data.ts";
import type { Sql } from "#store/sql.ts";

export function personalAccounts(sql: Sql): PersonalData[] {
  return [
    {
      kind: "invitations",
      find: (own, organizationId, subject) => own`
        select id from invitation
        where organization_id = ${organizationId} and (${mentions(own, subject, [own`email`])})`,
      read: (own, ids) => own`
        select id, email, role, created_at, accepted_at from invitation where id = any (${ids}::uuid[])`,
      async erase(ids) {
        await sql`delete from invitation where id = any (${ids}::uuid[])`;
      },
    },
    {
      kind: "request_log",
      find: (own, organizationId, subject) => own`
        select id::text as id from request_log
        where organization_id = ${organizationId} and (${mentions(own, subject, [own`payload`, own`path`])})`,
      read: (own, ids) => own`
        select method, path, status, payload, created_at from request_log where id = any (${ids}::bigint[])`,
      async erase(ids) {
        await sql`delete from request_log where id = any (${ids}::bigint[])`;
      },
    },
    {
      kind: "members",
      keptBecause: "A member's account is removed by removing the member",
      find: (own, organizationId, subject) => own`
        select app_user.id from app_user join organization_member member on member.user_id = app_user.id
        where member.organization_id = ${organizationId} and (${mentions(own, subject, [own`app_user.email`])})`,
      read: (own, ids) => own`
        select id, email, first_name, last_name, created_at from app_user where id = any (${ids}::uuid[])`,
    },
  ];
}
