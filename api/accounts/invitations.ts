/**
 * Invitations into an organization. The token goes to the invited address and nowhere else, so
 * whoever shows it reads that mailbox.
 */

import { Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import { Timestamp } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import { standingChanged, unauthorized } from "#identity/access_tokens.ts";
import { countCostly, countSignIn, signInSucceeded } from "#identity/attempt_limits.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { EmailAddress, GivenPassword, PersonName, refuseGuessable } from "#identity/credentials_schema.ts";
import { hashPassword, verifyPassword } from "#identity/password.ts";
import { sha256Hex } from "#identity/secret.ts";
import { type AnySql, oneRow, type Sql, violates } from "#store/sql.ts";
import { queueMail } from "./account_mail.ts";
import { insertMember, insertUser } from "./account_rows.ts";
import { invitationTtlMs, tokenLengthMax } from "./account_tokens.ts";
import { type AccountDeps, TokenReply, tokenReply } from "./accounts.ts";
import {
  InvitationReply,
  invitationColumns,
  OrganizationReply,
  type OrganizationRow,
  organizationColumns,
  organizationReply,
  UserReply,
  userColumns,
} from "./organization_record.ts";

const invitationRoles = ["admin", "member"] as const;
const path = "/v1/orgs/me/invitations";
const tokenParams = {
  token: Type.String({ minLength: 1, maxLength: tokenLengthMax, about: "the token of the link in the mail" }),
};
const triesPerMinute = 120;

const InvitationPreview = named(
  "InvitationPreview",
  Type.Object({
    organization_name: Type.String(),
    email: Type.String(),
    role: oneOf(invitationRoles),
    expires_at: Timestamp,
    has_account: Type.Boolean({ description: "true: accept with the password of that account" }),
  }),
  {
    organization_name: "who invites",
    email: "who is invited",
    role: "what the person may do once a member",
    has_account: "whether the address has an account already",
  },
);

const AcceptRequest = named(
  "InvitationAcceptance",
  Type.Object({
    password: GivenPassword,
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
  }),
  {
    password: "of the account that the address has, else the new account's",
  },
);
const AcceptReply = named(
  "AcceptedInvitation",
  Type.Composite([TokenReply, Type.Object({ user: UserReply, organization: OrganizationReply })]),
  {
    user: "the new member",
    organization: "which the user joined",
  },
);

const exampleInvitation = {
  id: "5a0c4e0e-6f53-4d0e-9a8c-3f8e6f1b2d10",
  email: "ben@inn.example",
  role: "member",
  status: "pending",
  invited_by: "0b7f9a52-2f3c-4c58-9a3e-0f1d5c7b9e01",
  created_at: "2026-11-21T09:00:00.000Z",
  expires_at: "2026-11-28T09:00:00.000Z",
  accepted_at: null,
};

export function invitationRoutes(
  deps: Pick<AccountDeps, "sql" | "bus" | "now" | "accessTokens" | "addressOf">,
): Route[] {
  const { sql, bus, now, accessTokens, addressOf } = deps;
  return [
    route({
      method: "POST",
      path,
      summary: "Invite somebody; the token is sent by mail",
      guard: accessTokens.member,
      body: named("NewInvitation", Type.Object({ email: EmailAddress, role: Type.Optional(oneOf(invitationRoles)) }), {
        email: "who is invited",
        role: "what the person may do once a member; `member` unless given",
      }),
      reply: { status: 201, body: InvitationReply },
      errors: ["forbidden", "conflict", "too_many_requests"],
      examples: { an_administrator: { body: { email: "{{new_email}}", role: "admin" } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        await countCostly(bus, "invite", principal.organizationId, 60);
        const invitation = { ...body, role: body.role ?? ("member" as const) };
        return sql.begin((transaction) => invite(transaction, principal, invitation, now()));
      },
    }),
    route({
      method: "GET",
      path,
      summary: "List invitations, accepted and expired ones included, revoked ones not",
      guard: accessTokens.member,
      reply: { status: 200, body: named("Invitations", Type.Array(InvitationReply)) },
      examples: { one_pending: { answer: [exampleInvitation] } },
      handle: async ({ principal }) => [
        ...(await sql<InvitationReply[]>`
          select ${invitationColumns(sql, now())} from invitation
          where organization_id = ${principal.organizationId} and revoked_at is null
          order by created_at desc, id`),
      ],
    }),
    route({
      method: "DELETE",
      path: "/v1/orgs/me/invitations/{invitation_id}",
      summary: "Revoke an invitation that was not accepted; revoking it again changes nothing",
      guard: accessTokens.member,
      reply: { status: 204 },
      errors: ["forbidden", "conflict"],
      paramsFrom: { invitation_id: { route: `POST ${path}`, field: "id" } },
      examples: { a_pending_one: {} },
      handle: async ({ principal, params }) => {
        requireAdministrator(principal);
        const [row] = await sql<{ accepted: boolean }[]>`
          update invitation
          set revoked_at = case when accepted_at is null then coalesce(revoked_at, ${now()}) else revoked_at end
          where id = ${params.invitation_id} and organization_id = ${principal.organizationId}
          returning accepted_at is not null as accepted`;
        if (!row) throw new ApiError("not_found");
        if (row.accepted) throw new ApiError("conflict", { detail: "The invitation was accepted already" });
        return new Response(null, { status: 204 });
      },
    }),
    route({
      method: "POST",
      path: "/v1/orgs/invitations/{token}/preview",
      summary: "What an invitation is for",
      guard: publicAccess,
      params: tokenParams,
      reply: { status: 200, body: InvitationPreview },
      errors: ["not_found", "gone", "too_many_requests"],
      examples: { token_from_the_mail: { params: { token: "{{invitation_token}}" } } },
      handle: async ({ params, request }) => {
        await countCostly(bus, "invitation", addressOf(request), triesPerMinute);
        const { organization_name, email, role, expires_at, user_id } = await findOpen(sql, params.token, now());
        return { organization_name, email, role, expires_at, has_account: user_id !== null };
      },
    }),
    route({
      method: "POST",
      path: "/v1/orgs/invitations/{token}/accept",
      summary: "Accept an invitation: with a password to set, or with that of the account that the address has",
      guard: publicAccess,
      params: tokenParams,
      body: AcceptRequest,
      reply: { status: 201, body: AcceptReply },
      errors: ["unauthorized", "not_found", "conflict", "gone", "too_many_requests"],
      examples: {
        without_an_account: {
          params: { token: "{{invitation_token}}" },
          body: { password: "correct horse battery", first_name: "Ben", last_name: "Rossi" },
        },
        unknown_token: {
          params: { token: "nonsense" },
          body: { password: "correct horse battery" },
          status: 404,
          answer: { detail: "No such invitation" },
        },
      },
      handle: async ({ params, body, request }) => {
        const address = addressOf(request);
        await countCostly(bus, "invitation", address, triesPerMinute);
        const invitation = await findOpen(sql, params.token, now());
        const passwordHash =
          invitation.user_id === null
            ? await hashToSet(body.password)
            : await checkPassword(deps, invitation, body.password, address);
        const accepted = await sql.begin((transaction) =>
          accept(transaction, { ...invitation, ...names(body), passwordHash }, now()),
        );
        await standingChanged(bus, accepted.user.id);
        const { user, organization, tokenVersion, role } = accepted;
        const membership = { organizationId: organization.id, role };
        const token = await tokenReply(accessTokens, { userId: user.id, tokenVersion, membership });
        return { ...token, user, organization: organizationReply(organization) };
      },
    }),
  ];
}

const names = ({ first_name = "", last_name = "" }: { first_name?: string; last_name?: string }) => ({
  first_name,
  last_name,
});

async function hashToSet(password: string): Promise<string> {
  if (password.length < 8 || password.length > 128) {
    const tooShort = password.length < 8;
    const msg = `Expected string length ${tooShort ? "greater or equal to 8" : "less or equal to 128"}`;
    throw invalidRequest("body", "password", msg, tooShort ? "string_too_short" : "string_too_long");
  }
  refuseGuessable(password);
  return hashPassword(password);
}

/** A token alone does not open an account that has a password: mail is forwarded and shared. */
async function checkPassword(
  { sql, now }: { sql: Sql; bus: Bus; now(): Date },
  invitation: OpenInvitation,
  password: string,
  address: string,
): Promise<string | null> {
  const signIn = { email: invitation.email, address };
  await countSignIn(sql, signIn, now());
  if (!(await verifyPassword(invitation.password_hash, password))) {
    throw unauthorized("Credential not accepted: this address has an account, whose password is expected");
  }
  if (invitation.user_id !== null) await signInSucceeded(sql, invitation.user_id, signIn, now());
  return invitation.password_hash;
}

/** @throws ApiError conflict for somebody who belongs to the organization or is invited already */
async function invite(
  sql: AnySql,
  caller: { organizationId: string; userId: string },
  { email, role }: { email: string; role: "admin" | "member" },
  now: Date,
): Promise<InvitationReply> {
  const members = await sql`
    select 1 from organization_member member join app_user person on person.id = member.user_id
    where member.organization_id = ${caller.organizationId} and lower(person.email) = lower(${email})`;
  if (members.length > 0)
    throw new ApiError("conflict", { detail: "This address belongs to the organization already" });
  await sql`
    update invitation set revoked_at = ${now}
    where organization_id = ${caller.organizationId} and lower(email) = lower(${email})
      and accepted_at is null and revoked_at is null and expires_at <= ${now}`;
  const rows = await sql<InvitationReply[]>`
    insert into invitation (organization_id, email, role, invited_by, created_at, expires_at)
    values (${caller.organizationId}, ${email}, ${role}, ${caller.userId}, ${now},
            ${new Date(now.getTime() + invitationTtlMs)})
    returning ${invitationColumns(sql, now)}`.catch((error: unknown) => {
    if (!violates(error, "invitation_pending_key")) throw error;
    throw new ApiError("conflict", { detail: "This address has a pending invitation already" });
  });
  const invitation = oneRow(rows);
  await queueMail(sql, { kind: "invitation", invitation_id: invitation.id });
  return invitation;
}

interface OpenInvitation {
  id: string;
  organization_id: string;
  organization_name: string;
  email: string;
  role: "admin" | "member";
  expires_at: Date;
  /** Of the account that the address has; null where there is none. */
  user_id: string | null;
  password_hash: string | null;
}

/** @throws ApiError not_found for a token that was never good, gone for one that is no longer */
async function findOpen(sql: AnySql, token: string, now: Date): Promise<OpenInvitation> {
  const [row] = await sql<(OpenInvitation & { is_open: boolean })[]>`
    select invitation.id, organization_id, organization.name as organization_name, invitation.email, role, expires_at,
           person.id as user_id, person.password_hash,
           accepted_at is null and revoked_at is null and expires_at > ${now} as is_open
    from invitation
    join organization on organization.id = invitation.organization_id
    left join app_user person on lower(person.email) = lower(invitation.email)
    where token_sha256 = ${sha256Hex(token)}`;
  if (!row) throw new ApiError("not_found", { detail: "No such invitation" });
  if (!row.is_open) throw noLongerOpen();
  return row;
}

const noLongerOpen = () =>
  new ApiError("gone", { detail: "The invitation was accepted or revoked already, or has expired" });

/** Of any number of racing calls one gets past the first statement. */
async function accept(
  sql: AnySql,
  invitation: OpenInvitation & { first_name: string; last_name: string; passwordHash: string | null },
  now: Date,
) {
  const claimed = await sql`
    update invitation set accepted_at = ${now}
    where id = ${invitation.id} and accepted_at is null and revoked_at is null and expires_at > ${now} returning 1`;
  if (claimed.length === 0) throw noLongerOpen();
  const userId =
    invitation.user_id ??
    (await insertUser(sql, { ...invitation, passwordHash: invitation.passwordHash ?? "", verifiedAt: now, now })).id;
  const user = oneRow(
    await sql<(UserReply & { token_version: number })[]>`
      update app_user set email_verified_at = coalesce(email_verified_at, ${now}), updated_at = ${now}
      where id = ${userId} returning ${userColumns(sql)}, token_version`,
  );
  await sql`update invitation set accepted_by = ${userId} where id = ${invitation.id}`;
  const role = await insertMember(sql, invitation.organization_id, userId, invitation.role, now);
  const organization = oneRow(
    await sql<OrganizationRow[]>`
      select ${organizationColumns(sql)} from organization where id = ${invitation.organization_id}`,
  );
  const { token_version: tokenVersion, ...shown } = user;
  return { user: shown, organization, tokenVersion, role };
}
