/**
 * The first platform administrator of an installation whose roles are processes of their own, with
 * an organization and a project to begin in. Said again it changes nothing that is there.
 */

import type { Caller, Role } from "#identity/caller.ts";
import { refuseGuessable } from "#identity/credentials_schema.ts";
import { hashPassword } from "#identity/password.ts";
import { insertProject } from "#identity/projects.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { queueMail } from "./account_mail.ts";
import { insertMember, insertOrganization, insertUser } from "./account_rows.ts";

/** Any constant will do: it names our lock in `pg_locks`. */
const lockKey = 7_305_004;

export interface FirstAdministrator {
  email: string;
  /** Of a new account. Undefined: a mail asks for one. An account that has a password keeps it. */
  password?: string | undefined;
  now: Date;
}

/** What was made now; all false when everything was there. */
export interface Bootstrapped {
  account: boolean;
  administrator: boolean;
  organization: boolean;
  project: boolean;
  /** A mail by which the administrator chooses a password is on its way. */
  mail: boolean;
}

/**
 * @throws Error when the address has an account that nobody proved to own: whoever signed up with it
 * would become administrator. @throws ApiError bad_request for a password that is guessed first
 */
export async function ensureFirstAdministrator(sql: Sql, given: FirstAdministrator): Promise<Bootstrapped> {
  if (given.password !== undefined) refuseGuessable(given.password);
  const passwordHash = given.password === undefined ? null : await hashPassword(given.password);
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lockKey})`;
    const known = await findUser(transaction, given.email);
    const user = known ?? (await insertAdministrator(transaction, given, passwordHash));
    const administrator = !user.is_platform_admin;
    if (administrator) {
      if (!user.email_verified_at) throw unproven(given.email);
      await transaction`update app_user set is_platform_admin = true, updated_at = ${given.now} where id = ${user.id}`;
    }
    const mail = !user.has_password;
    if (mail) await queueMail(transaction, { kind: "reset_password", email: given.email });
    const place = await ensureOrganization(transaction, user.id, given.now);
    const project = await ensureProject(transaction, place.caller, given.now);
    return { account: !known, administrator: !known || administrator, organization: place.made, project, mail };
  });
}

interface User {
  id: string;
  is_platform_admin: boolean;
  email_verified_at: Date | null;
  has_password: boolean;
}

async function findUser(sql: AnySql, email: string): Promise<User | undefined> {
  const [user] = await sql<User[]>`
    select id, is_platform_admin, email_verified_at, password_hash is not null as has_password
    from app_user where lower(email) = lower(${email})`;
  return user;
}

/** Who runs the installation vouches for the address. */
async function insertAdministrator(
  sql: AnySql,
  { email, now }: FirstAdministrator,
  passwordHash: string | null,
): Promise<User> {
  const { id } = await insertUser(sql, { email, passwordHash, verifiedAt: now, isPlatformAdmin: true, now });
  return { id, is_platform_admin: true, email_verified_at: now, has_password: passwordHash !== null };
}

const unproven = (email: string) =>
  new Error(
    `Cannot make ${email} an administrator: expected its account to have a confirmed address, and somebody signed up without; confirm it, or take another address`,
  );

async function ensureOrganization(sql: AnySql, userId: string, now: Date): Promise<{ caller: Caller; made: boolean }> {
  const [member] = await sql<{ organization_id: string; role: Role }[]>`
    select organization_id, role from organization_member where user_id = ${userId} order by created_at limit 1`;
  if (member) return { caller: { userId, organizationId: member.organization_id, role: member.role }, made: false };
  const { id } = await insertOrganization(sql, "Frontdesk", now);
  await insertMember(sql, id, userId, "owner", now);
  return { caller: { userId, organizationId: id, role: "owner" }, made: true };
}

/** One that was deleted is not made again. */
async function ensureProject(sql: AnySql, caller: Caller, now: Date): Promise<boolean> {
  const projects = await sql`select 1 from project where organization_id = ${caller.organizationId} limit 1`;
  if (projects.length > 0) return false;
  await insertProject(sql, caller, { name: "Front desk" }, now);
  return true;
}
