/**
 * Tokens that travel by mail: they prove who reads an address, once and for a while. The worker
 * makes them when it writes the mail, so that no queue and no log ever holds one.
 */

import { newSecret, sha256Hex } from "#identity/secret.ts";
import { purgeBefore } from "#store/purge.ts";
import type { AnySql, Sql } from "#store/sql.ts";

export type TokenPurpose = "verify_email" | "reset_password";

const hourMs = 60 * 60 * 1000;
export const tokenTtlMs: Readonly<Record<TokenPurpose, number>> = { verify_email: 48 * hourMs, reset_password: hourMs };
export const invitationTtlMs = 7 * 24 * hourMs;

/** Text that may be a token; anything longer is refused before it is hashed. */
export const tokenLengthMax = 200;

/** Makes a token for the user and returns it. Older ones go on working until they run out or one is used. */
export async function createAccountToken(
  sql: AnySql,
  { userId, purpose, now }: { userId: string; purpose: TokenPurpose; now: Date },
): Promise<string> {
  const { secret, sha256 } = newSecret();
  await sql`
    insert into account_token (user_id, purpose, token_sha256, created_at, expires_at)
    values (${userId}, ${purpose}, ${sha256}, ${now}, ${new Date(now.getTime() + tokenTtlMs[purpose])})`;
  return secret;
}

/**
 * Uses up a token, and with it every other one of the user for the same purpose. Of any number of
 * racing transactions one gets the user's id; the others get undefined, as for a token that is
 * unknown, used or too old.
 */
export async function useAccountToken(
  sql: AnySql,
  { token, purpose, now }: { token: string; purpose: TokenPurpose; now: Date },
): Promise<string | undefined> {
  const sha256 = sha256Hex(token);
  // The user first: transactions that use two tokens of one user take turns, and cannot deadlock.
  const [user] = await sql<{ id: string }[]>`
    select id from app_user
    where id = (select user_id from account_token where token_sha256 = ${sha256} and purpose = ${purpose})
    for update`;
  if (!user) return undefined;
  const [used] = await sql`
    update account_token set used_at = ${now}
    where token_sha256 = ${sha256} and purpose = ${purpose} and used_at is null and expires_at > ${now}
    returning 1`;
  if (!used) return undefined;
  await sql`
    update account_token set used_at = ${now}
    where user_id = ${user.id} and purpose = ${purpose} and used_at is null`;
  return user.id;
}

const keptForMs = 30 * 24 * hourMs;

/** Deletes tokens that ran out long ago. */
export async function purgeAccountTokens({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  await purgeBefore(sql, { table: "account_token", column: "expires_at" }, new Date(now().getTime() - keptForMs));
}
