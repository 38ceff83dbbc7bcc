/**
 * Authenticates personal access tokens, the only credential of the management API. What a token
 * opens is remembered for at most 10 s, and dropped at once when the bus says that it was revoked.
 */
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { bearerTokenOf, secretPrefixes } from "#contracts/secrets.ts";
import type { Guard } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";
import type { Caller } from "./caller.ts";
import { type Found, openRemembered } from "./remembered.ts";
import { equalSecrets, sha256Hex } from "./secret.ts";

export interface Authentication {
  personalAccessToken: Guard<Caller>;
  close(): Promise<void>;
}

export async function openAuthentication(deps: { sql: Sql; bus: Bus; now(): Date }): Promise<Authentication> {
  const remembered = await openRemembered<Caller>(deps);

  async function check(request: Request): Promise<Caller> {
    const token = bearerTokenOf(request.headers.get("authorization"));
    if (!token || !isPersonalAccessToken(token)) throw new ApiError("unauthorized");
    const sha256 = sha256Hex(token);
    const caller = await remembered.get(sha256, () => findCaller(deps.sql, sha256, deps.now()));
    if (!caller) throw new ApiError("unauthorized");
    return caller;
  }

  return { personalAccessToken: { scheme: "personal_access_token", check }, close: remembered.close };
}

function isPersonalAccessToken(token: string): boolean {
  return (
    token.startsWith(secretPrefixes.personalAccessToken) || token.startsWith(secretPrefixes.legacyPersonalAccessToken)
  );
}

async function findCaller(sql: Sql, sha256: string, now: Date): Promise<Found<Caller> | undefined> {
  const [row] = await sql<
    { user_id: string; organization_id: string; role: Caller["role"]; expires_at: Date | null }[]
  >`
    select token.user_id, token.organization_id, member.role, token.expires_at
    from personal_access_token token
    join organization_member member using (organization_id, user_id)
    where token.secret_sha256 = ${sha256}
      and token.revoked_at is null
      and (token.expires_at is null or token.expires_at > ${now})`;
  if (!row) return undefined;
  const value = { userId: row.user_id, organizationId: row.organization_id, role: row.role };
  return { value, expiresAt: row.expires_at };
}

/** Open to the holder of `INTERNAL_SECRET` alone: our own gateway. */
export function internalGuard(internalSecret: string): Guard<undefined> {
  return {
    scheme: "internal_secret",
    check: async (request) => {
      const token = bearerTokenOf(request.headers.get("authorization"));
      if (!token || !equalSecrets(token, internalSecret)) throw new ApiError("unauthorized");
      return undefined;
    },
  };
}
