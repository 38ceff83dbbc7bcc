/**
 * Sessions: JWT access tokens (HS256) that a sign-in gives out for an hour. The claims say who and
 * in which organization; whether that still holds is looked up, so that a changed password, a lost
 * membership or another role counts at once.
 */
import { hkdfSync } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import { type Bus, topics } from "#bus/bus.ts";
import { ApiError, type ErrorCode } from "#contracts/errors.ts";
import type { Guard } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";
import type { Caller, Role } from "./caller.ts";
import { showsLivingApiKey } from "./living_api_key.ts";
import { openRemembered } from "./remembered.ts";

export const accessTokenTtlS = 60 * 60;
const issuer = "frontdesk";
const audience = "frontdesk:accounts";
const clockToleranceS = 30;

/** Who holds an access token. */
export interface Account {
  userId: string;
  isPlatformAdmin: boolean;
  /** What the token acts in; a platform administrator may have none. */
  membership: { organizationId: string; role: Role } | undefined;
}

export interface NewAccessToken {
  userId: string;
  tokenVersion: number;
  membership: Account["membership"];
}

export interface AccessTokens {
  issue(token: NewAccessToken): Promise<string>;
  /** Whose token the text is. @throws ApiError unauthorized, saying whether it is malformed or not accepted */
  accountOf(token: string): Promise<Account>;
  /** Any signed-in person. */
  account: Guard<Account>;
  /** A person signed in to an organization. */
  member: Guard<Caller>;
  platformAdministrator: Guard<Account>;
  close(): Promise<void>;
}

interface Standing {
  tokenVersion: number;
  isPlatformAdmin: boolean;
  roles: ReadonlyMap<string, Role>;
}

export const unauthorized = (detail: string, cause?: unknown) => new ApiError("unauthorized", { detail, cause });
export const refusals = {
  missing: "Missing credential: expected Authorization: Bearer with an access token",
  person: "This call needs a signed-in user: expected Authorization: Bearer with an access token, not an API key",
  malformed: "Malformed credential: expected Authorization: Bearer with an access token",
  notAccepted: "Credential not accepted: the access token is unknown, expired or revoked",
};

/** A living API key, which no person is; and an account without what the call is for. */
const refuses: readonly ErrorCode[] = ["forbidden"];

export async function openAccessTokens(deps: {
  sql: Sql;
  bus: Bus;
  jwtSecret: string;
  now(): Date;
}): Promise<AccessTokens> {
  const { sql, now } = deps;
  const key = new Uint8Array(hkdfSync("sha256", deps.jwtSecret, "", "frontdesk access tokens v1", 32));
  const remembered = await openRemembered<Standing>(deps);

  async function accountOf(token: string): Promise<Account> {
    const claims = await verified(token, key, now());
    const standing = await remembered.get(claims.userId, () => findStanding(sql, claims.userId));
    const role = claims.organizationId === undefined ? undefined : standing?.roles.get(claims.organizationId);
    if (standing?.tokenVersion !== claims.tokenVersion) throw unauthorized(refusals.notAccepted);
    if (claims.organizationId !== undefined && role === undefined) throw unauthorized(refusals.notAccepted);
    return {
      userId: claims.userId,
      isPlatformAdmin: standing.isPlatformAdmin,
      membership:
        claims.organizationId !== undefined && role ? { organizationId: claims.organizationId, role } : undefined,
    };
  }

  const accountBehind = async (request: Request): Promise<Account> => {
    const header = request.headers.get("authorization");
    if (header === null || header.trim() === "") {
      if (await showsLivingApiKey(sql, request)) throw new ApiError("forbidden", { detail: refusals.person });
      throw unauthorized(refusals.missing);
    }
    const token = accessTokenIn(header);
    if (token === undefined) throw unauthorized(refusals.malformed);
    return accountOf(token);
  };

  return {
    accountOf,
    account: { scheme: "access_token", refuses, check: accountBehind },
    member: {
      scheme: "access_token",
      refuses,
      check: async (request) => {
        const { userId, membership } = await accountBehind(request);
        if (!membership) throw new ApiError("forbidden", { detail: "This account belongs to no organization" });
        return { userId, ...membership };
      },
    },
    platformAdministrator: {
      scheme: "access_token",
      refuses,
      check: async (request) => {
        const account = await accountBehind(request);
        if (!account.isPlatformAdmin) throw new ApiError("forbidden", { detail: "For platform administrators only" });
        return account;
      },
    },
    async issue({ userId, tokenVersion, membership }) {
      const issuedAtS = Math.floor(now().getTime() / 1000);
      return new SignJWT({
        ver: tokenVersion,
        ...(membership && { org: membership.organizationId, role: membership.role }),
      })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .setSubject(userId)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(issuedAtS)
        .setExpirationTime(issuedAtS + accessTokenTtlS)
        .setJti(crypto.randomUUID())
        .sign(key);
    },
    close: remembered.close,
  };
}

/** After a change of a user's password, role or memberships: what was remembered of the user is looked up anew. */
export function standingChanged(bus: Bus, userId: string): Promise<void> {
  return bus.publish(topics.credentialRevoked, userId);
}

function accessTokenIn(header: string): string | undefined {
  return /^Bearer +([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i.exec(header.trim().slice(0, 4096))?.[1];
}

async function verified(token: string, key: Uint8Array, now: Date) {
  const options = { algorithms: ["HS256"], issuer, audience, clockTolerance: clockToleranceS, currentDate: now };
  const payload = await jwtVerify(token, key, { ...options, requiredClaims: ["sub", "exp", "iat"] }).then(
    (result) => result.payload,
    (error: unknown) => {
      const isUnreadable = error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid;
      throw unauthorized(isUnreadable ? refusals.malformed : refusals.notAccepted, error);
    },
  );
  const { sub, org, ver } = payload;
  if (typeof sub !== "string" || typeof ver !== "number") throw unauthorized(refusals.notAccepted);
  return { userId: sub, tokenVersion: ver, organizationId: typeof org === "string" ? org : undefined };
}

async function findStanding(sql: Sql, userId: string): Promise<{ value: Standing } | undefined> {
  const rows = await sql<
    { token_version: number; is_platform_admin: boolean; organization_id: string | null; role: Role | null }[]
  >`
    select person.token_version, person.is_platform_admin, member.organization_id, member.role
    from app_user person left join organization_member member on member.user_id = person.id
    where person.id = ${userId}`;
  const [first] = rows;
  if (!first) return undefined;
  const roles = rows.flatMap(({ organization_id, role }) =>
    organization_id !== null && role !== null ? [[organization_id, role] as const] : [],
  );
  return {
    value: {
      tokenVersion: first.token_version,
      isPlatformAdmin: first.is_platform_admin,
      roles: new Map(roles),
    },
  };
}
