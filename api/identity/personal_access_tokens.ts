/** Personal access tokens: made by the bootstrap and by sign-in links; the accounts service lists and revokes them. */
import { secretPrefixes } from "#contracts/secrets.ts";
import type { AnySql } from "#store/sql.ts";
import { newSecret } from "./secret.ts";

export interface NewToken {
  userId: string;
  organizationId: string;
  name: string;
  now: Date;
  expiresAt?: Date;
}

/** Stores a new token and returns its secret, which nobody can read again. */
export async function createPersonalAccessToken(sql: AnySql, token: NewToken): Promise<string> {
  const { secret, sha256, prefix, lastFour } = newSecret(secretPrefixes.personalAccessToken);
  await sql`
    insert into personal_access_token
      (user_id, organization_id, name, secret_sha256, prefix, last_four, created_at, expires_at)
    values
      (${token.userId}, ${token.organizationId}, ${token.name}, ${sha256}, ${prefix}, ${lastFour},
       ${token.now}, ${token.expiresAt ?? null})`;
  return secret;
}
