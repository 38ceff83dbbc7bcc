/**
 * Authenticates personal access tokens, the only credential of the management API, and access keys, where no
 * app is named by the host. What a credential opens is remembered for at most 10 s, and dropped at once when
 * the bus says that it was revoked.
 */
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { bearerTokenOf, secretPrefixes } from "#contracts/secrets.ts";
import type { Guard } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";
import type { Caller } from "./caller.ts";
import { type Found, openRemembered, type Remembered } from "./remembered.ts";
import { equalSecrets, sha256Hex } from "./secret.ts";

export interface Authentication {
  personalAccessToken: Guard<Caller>;
  accessKey: Guard<KeyHolder>;
  close(): Promise<void>;
}

/** A program with an access key. */
export interface KeyHolder {
  organizationId: string;
  /** Null for a key of the whole organization. */
  projectId: string | null;
}

export async function openAuthentication(deps: { sql: Sql; bus: Bus; now(): Date }): Promise<Authentication> {
  const callers = await openRemembered<Caller>(deps);
  const keyHolders = await openRemembered<KeyHolder>(deps);

  async function check<T>(request: Request, accept: (token: string) => boolean, of: Remembered<T>, find: Find<T>) {
    const token = bearerTokenOf(request.headers.get("authorization"));
    if (!token || !accept(token)) throw new ApiError("unauthorized");
    const sha256 = sha256Hex(token);
    const found = await of.get(sha256, () => find(deps.sql, sha256, deps.now()));
    if (!found) throw new ApiError("unauthorized");
    return found;
  }

  return {
    personalAccessToken: {
      scheme: "personal_access_token",
      check: (request) => check(request, isPersonalAccessToken, callers, findCaller),
    },
    accessKey: {
      scheme: "access_key",
      check: (request) => check(request, isAccessKey, keyHolders, findKeyHolder),
    },
    async close() {
      await callers.close();
      await keyHolders.close();
    },
  };
}

type Find<T> = (sql: Sql, sha256: string, now: Date) => Promise<Found<T> | undefined>;

const isAccessKey = (token: string) => token.startsWith(secretPrefixes.accessKey);

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

async function findKeyHolder(sql: Sql, sha256: string, now: Date): Promise<Found<KeyHolder> | undefined> {
  const [row] = await sql<{ organization_id: string; project_id: string | null; expires_at: Date | null }[]>`
    select organization_id, project_id, expires_at from access_key
    where secret_sha256 = ${sha256} and revoked_at is null and (expires_at is null or expires_at > ${now})`;
  if (!row) return undefined;
  return { value: { organizationId: row.organization_id, projectId: row.project_id }, expiresAt: row.expires_at };
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
