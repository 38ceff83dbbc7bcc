/**
 * Who belongs to an organization, and as what. Administrators change and remove members; what is an
 * owner's only owners change; everybody may leave. An organization keeps at least one owner, also
 * when two leave at once: changes of one organization's members wait for each other.
 */

import { type Static, Type } from "@sinclair/typebox";
import { type Bus, topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { type AccessTokens, standingChanged, unauthorized } from "#identity/access_tokens.ts";
import { type Caller, type Role, roles } from "#identity/caller.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";
import { MemberReply } from "./organization_record.ts";

export interface MemberDeps {
  sql: Sql;
  bus: Bus;
  accessTokens: Pick<AccessTokens, "member">;
}

const path = "/v1/orgs/me/members/{user_id}";

export function memberRoutes({ sql, bus, accessTokens }: MemberDeps): Route[] {
  /** Makes a change under the lock, then ends what other requests remember of the person. */
  const changing = async <T>(
    caller: Caller,
    userId: string,
    role: Role | undefined,
    change: (sql: AnySql) => Promise<T>,
  ): Promise<T> => {
    const { secrets, result } = await sql.begin(async (transaction) => {
      const rolesByUser = await lockMembers(transaction, caller.organizationId);
      const problem = problemOfChange(rolesByUser, caller.userId, { userId, role });
      if (problem) throw problem;
      const tokens = await transaction<{ secret_sha256: string }[]>`
        select secret_sha256 from personal_access_token
        where organization_id = ${caller.organizationId} and user_id = ${userId}`;
      return { secrets: tokens.map((token) => token.secret_sha256), result: await change(transaction) };
    });
    await standingChanged(bus, userId);
    for (const secret of secrets) await bus.publish(topics.credentialRevoked, secret);
    return result;
  };
  return [
    route({
      method: "PATCH",
      path,
      summary: "Change a member's role; the last owner stays one",
      guard: accessTokens.member,
      body: named("MemberChange", Type.Object({ role: oneOf(roles) }), {
        role: "what the person may do from now on",
      }),
      reply: { status: 200, body: MemberReply },
      errors: ["forbidden", "conflict"],
      examples: { make_an_administrator: { params: { user_id: "{{member_id}}" }, body: { role: "admin" } } },
      handle: ({ principal, params, body }) =>
        changing(principal, params.user_id, body.role, async (transaction) =>
          oneRow(
            await transaction<Static<typeof MemberReply>[]>`
              update organization_member member set role = ${body.role}
              from app_user person
              where member.organization_id = ${principal.organizationId} and member.user_id = ${params.user_id}
                and person.id = member.user_id
              returning member.user_id, person.email, person.first_name, person.last_name, member.role,
                        member.created_at as joined_at`,
          ),
        ),
    }),
    route({
      method: "DELETE",
      path,
      summary: "Remove a member, or leave; what was given out to them in the organization's name ends at once",
      guard: accessTokens.member,
      reply: { status: 204 },
      errors: ["forbidden", "conflict"],
      examples: { a_colleague_who_left: { params: { user_id: "{{member_id}}" } } },
      handle: async ({ principal: caller, params: { user_id: userId } }) => {
        await changing(caller, userId, undefined, async (transaction) => {
          await transaction`
            delete from project_member where user_id = ${userId}
              and project_id in (select id from project where organization_id = ${caller.organizationId})`;
          await transaction`
            delete from organization_member
            where organization_id = ${caller.organizationId} and user_id = ${userId}`;
        });
        return new Response(null, { status: 204 });
      },
    }),
  ];
}

/** Everybody's role; nobody else changes one until the transaction ends. */
async function lockMembers(sql: AnySql, organizationId: string): Promise<ReadonlyMap<string, Role>> {
  await sql`select 1 from organization where id = ${organizationId} for update`;
  const rows = await sql<{ user_id: string; role: Role }[]>`
    select user_id, role from organization_member where organization_id = ${organizationId}`;
  return new Map(rows.map(({ user_id, role }) => [user_id, role]));
}

/** What forbids a change, by the roles as they are now; a `role` of undefined is a removal. */
function problemOfChange(
  rolesByUser: ReadonlyMap<string, Role>,
  callerId: string,
  { userId, role }: { userId: string; role: Role | undefined },
): ApiError | undefined {
  const callerRole = rolesByUser.get(callerId);
  const before = rolesByUser.get(userId);
  if (!callerRole) return unauthorized("Credential not accepted: its holder has left the organization");
  if (!before) return new ApiError("not_found");
  const leaves = role === undefined && userId === callerId;
  if (callerRole === "member" && !leaves) return new ApiError("forbidden");
  if (callerRole !== "owner" && (before === "owner" || role === "owner")) {
    return new ApiError("forbidden", { detail: "Only owners make and remove owners" });
  }
  const owners = [...rolesByUser.values()].filter((one) => one === "owner").length;
  if (before === "owner" && role !== "owner" && owners === 1) {
    return new ApiError("conflict", { detail: "The organization would be left without an owner" });
  }
  return undefined;
}
