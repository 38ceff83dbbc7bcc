/** The caller's organization: its people (`members.ts` changes them), its pending invitations, its legal profile. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { json, oneRow } from "#store/sql.ts";
import { changedLegalProfile, exampleLegalProfile, LegalProfileChange } from "./legal_profile.ts";
import { type MemberDeps, memberRoutes } from "./members.ts";
import {
  exampleOrganization,
  exampleUser,
  InvitationReply,
  invitationColumns,
  MemberReply,
  OrganizationReply,
  type OrganizationRow,
  organizationColumns,
  organizationReply,
} from "./organization_record.ts";

export interface OrganizationDeps extends MemberDeps {
  /** Programs with a key, and people: reads that need no person. */
  program: Guard<{ organizationId: string }>;
  now(): Date;
}

const OrganizationDetail = named(
  "OrganizationDetail",
  Type.Composite([
    OrganizationReply,
    Type.Object({ members: Type.Array(MemberReply), pending_invitations: Type.Array(InvitationReply) }),
  ]),
  {
    members: "those who belong to it",
    pending_invitations: "those who may join it",
  },
);

const { id: user_id, email, first_name, last_name, created_at: joined_at } = exampleUser;
const exampleMember = { user_id, email, first_name, last_name, role: "owner", joined_at };

export function organizationRoutes(deps: OrganizationDeps): Route[] {
  const { sql, now, accessTokens, program } = deps;
  return [
    ...memberRoutes(deps),
    route({
      method: "GET",
      path: "/v1/orgs/me",
      summary: "The organization that the key or token acts in, with members and pending invitations",
      guard: program,
      reply: { status: 200, body: OrganizationDetail },
      examples: {
        one_owner: { answer: { ...exampleOrganization, members: [exampleMember], pending_invitations: [] } },
      },
      handle: async ({ principal: { organizationId } }) => {
        const at = now();
        const [organizations, members, invitations] = await Promise.all([
          sql<OrganizationRow[]>`select ${organizationColumns(sql)} from organization where id = ${organizationId}`,
          sql<Static<typeof MemberReply>[]>`
            select member.user_id, person.email, person.first_name, person.last_name, member.role,
                   member.created_at as joined_at
            from organization_member member join app_user person on person.id = member.user_id
            where member.organization_id = ${organizationId} order by member.created_at, member.user_id`,
          sql<InvitationReply[]>`
            select ${invitationColumns(sql, at)} from invitation
            where organization_id = ${organizationId}
              and accepted_at is null and revoked_at is null and expires_at > ${at}
            order by created_at, id`,
        ]);
        const organization = organizationReply(oneRow(organizations));
        return { ...organization, members: [...members], pending_invitations: [...invitations] };
      },
    }),
    route({
      method: "PATCH",
      path: "/v1/orgs/me/legal-profile",
      summary: "Set legal fields, or clear them with null; fields that are not named stay",
      guard: accessTokens.member,
      body: LegalProfileChange,
      strictBody: true,
      reply: { status: 200, body: OrganizationReply },
      errors: ["forbidden"],
      examples: {
        a_german_inn: { body: exampleLegalProfile },
        clear_one_field: { body: { registration_number: null } },
        unknown_time_zone: {
          body: { time_zone: "Europe/Atlantis" },
          status: 422,
          answer: {
            detail: [
              {
                type: "value_error",
                loc: ["body", "time_zone"],
                msg: "Expected an IANA time zone, for example Europe/Berlin",
              },
            ],
          },
        },
      },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        return sql.begin(async (transaction) => {
          const { legal_profile: before } = oneRow(
            await transaction<Pick<OrganizationRow, "legal_profile">[]>`
              select legal_profile from organization where id = ${principal.organizationId} for update`,
          );
          const rows = await transaction<OrganizationRow[]>`
            update organization
            set legal_profile = ${json(transaction, changedLegalProfile(before, body))}, updated_at = ${now()}
            where id = ${principal.organizationId} returning ${organizationColumns(transaction)}`;
          return organizationReply(oneRow(rows));
        });
      },
    }),
  ];
}
