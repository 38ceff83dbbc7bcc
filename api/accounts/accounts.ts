/** Accounts: sign-up, registration by an administrator, sign-in, and who I am. */

import { type Static, Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import { type AccessTokens, accessTokenTtlS, unauthorized } from "#identity/access_tokens.ts";
import { type AddressOf, countCostly, countSignIn, signInSucceeded } from "#identity/attempt_limits.ts";
import { type Role, roles } from "#identity/caller.ts";
import {
  EmailAddress,
  GivenPassword,
  NewPassword,
  OrganizationName,
  PersonName,
  refuseGuessable,
} from "#identity/credentials_schema.ts";
import { hashPassword, needsRehash, verifyPassword } from "#identity/password.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";
import { queueMail } from "./account_mail.ts";
import { insertMember, insertOrganization, insertUser } from "./account_rows.ts";
import {
  exampleOrganization,
  exampleUser,
  OrganizationReply,
  type OrganizationRow,
  organizationColumns,
  organizationReply,
  UserReply,
  userColumns,
} from "./organization_record.ts";

export interface AccountDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  accessTokens: AccessTokens;
  addressOf: AddressOf;
  requireEmailVerification: boolean;
}

const SignupRequest = named(
  "Signup",
  Type.Object({
    email: EmailAddress,
    password: NewPassword,
    organization_name: Type.Optional(OrganizationName),
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
  }),
  {
    organization_name: "the new organization's name; made from the address unless given",
  },
);

/** An access token and how long it works. */
export const TokenReply = named(
  "AccessToken",
  Type.Object({
    access_token: Type.String(),
    token_type: oneOf(["bearer"]),
    expires_in: Type.Integer({ description: "seconds" }),
  }),
  {
    access_token: "a JWT, for `Authorization: Bearer`",
    token_type: "always bearer",
    expires_in: "seconds until it ends to be valid",
  },
);

const SignupReply = named(
  "SignedUp",
  Type.Object({
    user: UserReply,
    organization: OrganizationReply,
    email_verification_required: Type.Boolean(),
    access_token: Type.Optional(Type.String()),
    token_type: Type.Optional(oneOf(["bearer"])),
    expires_in: Type.Optional(Type.Integer({ description: "seconds" })),
  }),
  {
    user: "the new user",
    organization: "the new organization, which the user owns",
    email_verification_required: "true: nobody is signed in before the address is verified, and there is no token here",
    access_token: "a JWT, for `Authorization: Bearer`",
    token_type: "always bearer",
    expires_in: "seconds until it ends to be valid",
  },
);

const UserRegister = named(
  "NewUser",
  Type.Object({
    email: EmailAddress,
    password: NewPassword,
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
    organization_id: Type.Optional(Type.String({ format: "uuid", description: "absent: a user without organization" })),
    role: Type.Optional(oneOf(roles)),
  }),
  {
    organization_id: "the organization that the user joins",
    role: "what the user may do there; `member` unless given",
  },
);
const RegisteredReply = named(
  "RegisteredUser",
  Type.Composite([
    UserReply,
    Type.Object({ organization_id: Type.Unsafe<string | null>({ type: ["string", "null"] }) }),
  ]),
  {
    organization_id: "the organization that the user joined; null for none",
  },
);

const LoginRequest = named(
  "Login",
  Type.Object({
    email: EmailAddress,
    password: GivenPassword,
    organization_id: Type.Optional(
      Type.String({ format: "uuid", description: "absent: the organization that was joined first" }),
    ),
  }),
  {
    organization_id: "the organization to sign in to",
  },
);

const MeReply = named(
  "Me",
  Type.Object({
    user: UserReply,
    organization: Type.Union([OrganizationReply, Type.Null()]),
    role: Type.Union([oneOf(roles), Type.Null()]),
  }),
  {
    user: "who is signed in",
    organization: "where; null for a user without one",
    role: "what the user may do there; null without an organization",
  },
);

export function accountRoutes(deps: AccountDeps): Route[] {
  const { sql, bus, now, accessTokens, addressOf } = deps;
  return [
    route({
      method: "POST",
      path: "/v1/auth/signup",
      summary: "Sign up: a user and an organization, of which the user is the owner",
      guard: publicAccess,
      body: SignupRequest,
      reply: { status: 201, body: SignupReply },
      errors: ["conflict", "too_many_requests"],
      examples: {
        an_inn: {
          body: {
            email: "anna@inn.example",
            password: "correct horse battery",
            organization_name: "The Inn at the Lake",
            first_name: "Anna",
            last_name: "Huber",
          },
        },
      },
      handle: async ({ body, request }) => {
        await countCostly(bus, "signup", addressOf(request), 120);
        refuseGuessable(body.password);
        const passwordHash = await hashPassword(body.password);
        const { user, organization } = await sql.begin((transaction) => signUp(transaction, body, passwordHash, now()));
        const reply = {
          user,
          organization: organizationReply(organization),
          email_verification_required: deps.requireEmailVerification,
        };
        if (deps.requireEmailVerification) return reply;
        const membership = { organizationId: organization.id, role: "owner" as const };
        return { ...reply, ...(await tokenReply(accessTokens, { userId: user.id, tokenVersion: 0, membership })) };
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/register",
      summary: "Create a user; for platform administrators",
      guard: accessTokens.platformAdministrator,
      body: UserRegister,
      reply: { status: 201, body: RegisteredReply },
      errors: ["forbidden", "not_found", "conflict"],
      examples: {
        a_colleague: {
          body: {
            email: "{{new_email}}",
            password: "correct horse battery",
            organization_id: "{{organization_id}}",
            role: "admin",
          },
        },
      },
      handle: async ({ body }) => {
        refuseGuessable(body.password);
        const passwordHash = await hashPassword(body.password);
        const organizationId = body.organization_id ?? null;
        const user = await sql.begin(async (transaction) => {
          if (organizationId !== null) {
            const rows = await transaction`select 1 from organization where id = ${organizationId} for share`;
            if (rows.length === 0) throw new ApiError("not_found", { detail: "No such organization" });
          }
          const created = await insertUser(transaction, { ...body, passwordHash, verifiedAt: null, now: now() });
          if (organizationId !== null) {
            await insertMember(transaction, organizationId, created.id, body.role ?? "member", now());
          }
          return created;
        });
        return { ...user, organization_id: organizationId };
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/login",
      summary: "Sign in",
      guard: publicAccess,
      body: LoginRequest,
      reply: { status: 200, body: TokenReply },
      errors: ["unauthorized", "forbidden", "not_found", "too_many_requests"],
      examples: {
        by_password: { body: { email: "{{email}}", password: "correct horse battery" } },
        wrong_password: {
          body: { email: "{{email}}", password: "correct horse" },
          status: 401,
          answer: { detail: "Credential not accepted: wrong e-mail address or password" },
        },
      },
      handle: ({ body, request }) => logIn(deps, body, addressOf(request)),
    }),
    route({
      method: "GET",
      path: "/v1/auth/me",
      summary: "The current user and their organization",
      guard: accessTokens.account,
      reply: { status: 200, body: MeReply },
      examples: { an_owner: { answer: { user: exampleUser, organization: exampleOrganization, role: "owner" } } },
      handle: async ({ principal: { userId, membership } }) => {
        const user = oneRow(await sql<UserReply[]>`select ${userColumns(sql)} from app_user where id = ${userId}`);
        if (!membership) return { user, organization: null, role: null };
        const organization = oneRow(
          await sql<OrganizationRow[]>`
            select ${organizationColumns(sql)} from organization where id = ${membership.organizationId}`,
        );
        return { user, organization: organizationReply(organization), role: membership.role };
      },
    }),
  ];
}

/** A session for the membership, in the form that all endpoints answer. */
export async function tokenReply(
  accessTokens: Pick<AccessTokens, "issue">,
  token: Parameters<AccessTokens["issue"]>[0],
): Promise<Static<typeof TokenReply>> {
  return { access_token: await accessTokens.issue(token), token_type: "bearer", expires_in: accessTokenTtlS };
}

async function signUp(sql: AnySql, body: Static<typeof SignupRequest>, passwordHash: string, now: Date) {
  const user = await insertUser(sql, { ...body, passwordHash, verifiedAt: null, now });
  const name = body.organization_name ?? body.email;
  const organization = await insertOrganization(sql, name, now);
  await insertMember(sql, organization.id, user.id, "owner", now);
  await queueMail(sql, { kind: "verify_email", email: user.email });
  return { user, organization };
}

async function logIn(deps: AccountDeps, body: Static<typeof LoginRequest>, address: string) {
  const { sql, bus, now, accessTokens, requireEmailVerification } = deps;
  const signIn = { email: body.email, address };
  await countSignIn(sql, signIn, now());
  const [user] = await sql<
    { id: string; email: string; password_hash: string | null; email_verified_at: Date | null; token_version: number }[]
  >`
    select id, email, password_hash, email_verified_at, token_version
    from app_user where lower(email) = lower(${body.email})`;
  const matches = await verifyPassword(user?.password_hash, body.password);
  if (!user || !matches) throw unauthorized("Credential not accepted: wrong e-mail address or password");
  await signInSucceeded(sql, user.id, signIn, now());
  if (requireEmailVerification && !user.email_verified_at) {
    // Often asked, seldom mailed: the refusal is the same.
    const mailed = await bus.hitRateLimit(`login_mail:${user.id}`, 5, 60_000).catch(() => ({ allowed: true }));
    if (mailed.allowed) await queueMail(sql, { kind: "verify_email", email: user.email });
    throw new ApiError("forbidden", { detail: "email_verification_required" });
  }
  if (user.password_hash !== null && needsRehash(user.password_hash)) {
    const renewed = await hashPassword(body.password);
    await sql`
      update app_user set password_hash = ${renewed} where id = ${user.id} and password_hash = ${user.password_hash}`;
  }
  const inOrganization = body.organization_id ? sql`organization_id = ${body.organization_id}` : sql`true`;
  const [membership] = await sql<{ organization_id: string; role: Role }[]>`
    select organization_id, role from organization_member
    where user_id = ${user.id} and ${inOrganization} order by created_at, organization_id limit 1`;
  if (body.organization_id && !membership) {
    throw new ApiError("not_found", { detail: "No such organization, or this account is not in it" });
  }
  return tokenReply(accessTokens, {
    userId: user.id,
    tokenVersion: user.token_version,
    membership: membership && { organizationId: membership.organization_id, role: membership.role },
  });
}
