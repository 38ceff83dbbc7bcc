/**
 * Sign-in links: a code that is good once, for an hour, and gives a personal access token for
 * 12 hours. The standalone start prints one, so that a browser needs no password.
 */

import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { secretBytes } from "#contracts/secrets.ts";
import { dataOf } from "#http/paging.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import type { AnySql } from "#store/sql.ts";
import type { ApiDeps } from "./api_deps.ts";
import { createPersonalAccessToken } from "./personal_access_tokens.ts";
import { newSecret, sha256Hex } from "./secret.ts";

const linkTtlMs = 60 * 60 * 1000;
const tokenTtlMs = 12 * 60 * 60 * 1000;
const codeLength = Math.ceil((secretBytes * 4) / 3);

const Redeem = named(
  "SignInCode",
  Type.Object(
    { code: Type.String({ pattern: `^[A-Za-z0-9_-]{${codeLength}}$`, description: "the code of a sign-in link" }) },
    { additionalProperties: false },
  ),
);
const Redeemed = dataOf(
  named("SignIn", Type.Object({ token: Type.String(), expires_at: Timestamp }), {
    token: "a personal access token for this browser",
  }),
);

export function signInLinkRoutes({ sql, now }: Pick<ApiDeps, "sql" | "now">): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/sign-in-links/redeem",
      summary: "Exchange the code of a sign-in link for a personal access token of 12 hours; a code works once",
      guard: publicAccess,
      body: Redeem,
      reply: { status: 200, body: Redeemed },
      errors: ["gone"],
      examples: { code_of_a_link: { body: { code: "{{sign_in_code}}" } } },
      handle: async ({ body }) => {
        const redeemed = await sql.begin((transaction) => redeem(transaction, body.code, now()));
        if (!redeemed)
          throw new ApiError("gone", { details: { code: "Expected a code that is unused and less than an hour old" } });
        return { data: redeemed };
      },
    }),
  ];
}

/** Makes a link for the user and returns its code, which is stored only as SHA-256. */
export async function createSignInLink(sql: AnySql, userId: string, now = new Date()): Promise<string> {
  const { secret, sha256 } = newSecret();
  await sql`
    insert into sign_in_link (user_id, code_sha256, created_at, expires_at)
    values (${userId}, ${sha256}, ${now}, ${new Date(now.getTime() + linkTtlMs)})`;
  return secret;
}

async function redeem(sql: AnySql, code: string, now: Date): Promise<{ token: string; expires_at: Date } | undefined> {
  const [link] = await sql<{ user_id: string }[]>`
    update sign_in_link set redeemed_at = ${now}
    where code_sha256 = ${sha256Hex(code)} and redeemed_at is null and expires_at > ${now}
    returning user_id`;
  if (!link) return undefined;
  const [membership] = await sql<{ organization_id: string }[]>`
    select organization_id from organization_member where user_id = ${link.user_id} order by created_at limit 1`;
  if (!membership) return undefined;
  const expiresAt = new Date(now.getTime() + tokenTtlMs);
  const token = await createPersonalAccessToken(sql, {
    userId: link.user_id,
    organizationId: membership.organization_id,
    name: "Sign-in link",
    now,
    expiresAt,
  });
  return { token, expires_at: expiresAt };
}
