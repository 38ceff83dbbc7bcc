/** Users, organizations and who belongs to which: the rows, for whoever makes some. */
import { ApiError } from "#contracts/errors.ts";
import type { Role } from "#identity/caller.ts";
import { type AnySql, oneRow, violates } from "#store/sql.ts";
import { type OrganizationRow, organizationColumns, type UserReply, userColumns } from "./organization_record.ts";

const emailTaken = () => new ApiError("conflict", { detail: "This e-mail address has an account already" });

export interface NewUser {
  email: string;
  first_name?: string;
  last_name?: string;
  /** Null until the person chooses one. */
  passwordHash: string | null;
  verifiedAt: Date | null;
  isPlatformAdmin?: boolean;
  now: Date;
}

/** @throws ApiError conflict when the address has an account, also one that a racing transaction makes */
export async function insertUser(sql: AnySql, user: NewUser): Promise<UserReply> {
  const rows = await sql<UserReply[]>`
    insert into app_user
      (email, first_name, last_name, password_hash, email_verified_at, is_platform_admin, created_at, updated_at)
    values (${user.email}, ${user.first_name ?? ""}, ${user.last_name ?? ""}, ${user.passwordHash},
            ${user.verifiedAt}, ${user.isPlatformAdmin ?? false}, ${user.now}, ${user.now})
    returning ${userColumns(sql)}`.catch((error: unknown) => {
    throw violates(error, "app_user_email_key") ? emailTaken() : error;
  });
  return oneRow(rows);
}

/** Joins an organization; who belongs to it already keeps the role. */
export async function insertMember(
  sql: AnySql,
  organizationId: string,
  userId: string,
  role: Role,
  now: Date,
): Promise<Role> {
  const rows = await sql<{ role: Role }[]>`
    insert into organization_member (organization_id, user_id, role, created_at)
    values (${organizationId}, ${userId}, ${role}, ${now})
    on conflict (organization_id, user_id) do update set role = organization_member.role
    returning role`;
  return oneRow(rows).role;
}

export async function insertOrganization(sql: AnySql, name: string, now: Date): Promise<OrganizationRow> {
  const rows = await sql<OrganizationRow[]>`
    insert into organization (name, created_at, updated_at) values (${name}, ${now}, ${now})
    returning ${organizationColumns(sql)}`;
  return oneRow(rows);
}

/** Gives a user another password; who is signed in stays signed in. @returns the user's address */
export async function replacePassword(sql: AnySql, userId: string, passwordHash: string, now: Date): Promise<string> {
  const rows = await sql<{ email: string }[]>`
    update app_user set password_hash = ${passwordHash}, updated_at = ${now} where id = ${userId} returning email`;
  return oneRow(rows).email;
}
