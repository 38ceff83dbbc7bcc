/**
 * Mail of accounts: verification, password reset, invitation. Handlers queue a job that names an
 * address; whether there is an account behind it is the worker's question, so that neither the
 * answer nor its duration tells a caller. The worker makes the token when it writes the mail.
 */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { oneOf } from "#contracts/one_of.ts";
import { newSecret } from "#identity/secret.ts";
import type { Mailer } from "#outbound/mailer.ts";
import { type AnySql, json, type Sql } from "#store/sql.ts";
import { type Letter, letters, renderLetter } from "./account_letters.ts";
import { createAccountToken } from "./account_tokens.ts";

export const sendMailTask = "send_mail";
const attemptsMax = 12;

const MailJob = Type.Union([
  Type.Object({ kind: oneOf(["verify_email", "reset_password"]), email: Type.String() }),
  Type.Object({ kind: oneOf(["invitation"]), invitation_id: Type.String() }),
]);
export type MailJob = Static<typeof MailJob>;

/** Queues a mail; in a transaction it goes out only if that commits. */
export async function queueMail(sql: AnySql, job: MailJob): Promise<void> {
  await sql`select graphile_worker.add_job(${sendMailTask}, ${json(sql, job)}, max_attempts := ${attemptsMax})`;
}

export interface MailDeps {
  sql: Sql;
  mailer: Mailer;
  /** Links are made from it. */
  publicUrl: string;
  now(): Date;
}

/** The worker's task. @throws Error when the mail was not taken; the queue then tries again, ever later */
export async function sendQueuedMail(deps: MailDeps, payload: unknown): Promise<void> {
  const job = Value.Parse(MailJob, payload);
  const mail =
    "invitation_id" in job ? await invitationLetter(deps, job.invitation_id) : await accountLetter(deps, job);
  if (mail) await deps.mailer.send({ to: mail.to, ...renderLetter(mail.letter) });
}

interface Addressed {
  to: string;
  letter: Letter;
}

async function accountLetter(
  { sql, publicUrl, now }: MailDeps,
  { kind, email }: Extract<MailJob, { email: string }>,
): Promise<Addressed | undefined> {
  const [user] = await sql<{ id: string; email: string; email_verified_at: Date | null }[]>`
    select id, email, email_verified_at from app_user where lower(email) = lower(${email})`;
  if (!user || (kind === "verify_email" && user.email_verified_at)) return undefined;
  const token = await createAccountToken(sql, { userId: user.id, purpose: kind, now: now() });
  return { to: user.email, letter: letters[kind](`${publicUrl}/account/${pages[kind]}#token=${token}`) };
}

const pages = { verify_email: "verify-email", reset_password: "reset-password" } as const;

/** A second try replaces the token of the first, whose mail may have arrived or not. */
async function invitationLetter({ sql, publicUrl, now }: MailDeps, id: string): Promise<Addressed | undefined> {
  const { secret, sha256 } = newSecret();
  const [invitation] = await sql<{ email: string; organization: string }[]>`
    update invitation set token_sha256 = ${sha256}
    from organization
    where invitation.id = ${id} and organization.id = invitation.organization_id
      and accepted_at is null and revoked_at is null and expires_at > ${now()}
    returning email, organization.name as organization`;
  if (!invitation) return undefined;
  const link = `${publicUrl}/account/invitation#token=${secret}`;
  return { to: invitation.email, letter: letters.invitation(link, invitation.organization) };
}
