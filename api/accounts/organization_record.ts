/** Users and organizations as the accounts service answers them, and reading them. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { roles } from "#identity/caller.ts";
import { type AnySql, json, oneRow } from "#store/sql.ts";
import { exampleLegalProfile, type LegalProfile, LegalProfileReply, wholeLegalProfile } from "./legal_profile.ts";

export const UserReply = named(
  "User",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    email: Type.String(),
    first_name: Type.String(),
    last_name: Type.String(),
    email_verified: Type.Boolean(),
    email_verified_at: OptionalTimestamp,
    is_platform_admin: Type.Boolean(),
    created_at: Timestamp,
  }),
  {
    email_verified: "whether the person has proved that the address is theirs",
    email_verified_at: "when; null before",
    is_platform_admin: "whether the person administers the platform, beyond one organization",
  },
);
export type UserReply = Static<typeof UserReply>;

export const userColumns = (sql: AnySql) =>
  sql`id, email, first_name, last_name, email_verified_at is not null as email_verified, email_verified_at,
      is_platform_admin, created_at`;

export const OrganizationReply = named(
  "Organization",
  Type.Composite([
    Type.Object({
      id: Type.String({ format: "uuid" }),
      name: Type.String(),
      api_access_enabled: Type.Boolean(),
      created_at: Timestamp,
      updated_at: Timestamp,
    }),
    LegalProfileReply,
  ]),
  {
    name: "what it is called",
    api_access_enabled: "whether its owners may make API keys; a platform administrator sets it",
  },
);
export type OrganizationReply = Static<typeof OrganizationReply>;

export const organizationColumns = (sql: AnySql) =>
  sql`id, name, api_access_enabled, legal_profile, created_at, updated_at`;

export interface OrganizationRow {
  id: string;
  name: string;
  api_access_enabled: boolean;
  legal_profile: LegalProfile;
  created_at: Date;
  updated_at: Date;
}

/** The legal fields stand beside the others; one that is not set is null. */
export function organizationReply({ legal_profile, ...organization }: OrganizationRow): OrganizationReply {
  return { ...organization, ...wholeLegalProfile(legal_profile) };
}

export const MemberReply = named(
  "Member",
  Type.Object({
    user_id: Type.String({ format: "uuid" }),
    email: Type.String(),
    first_name: Type.String(),
    last_name: Type.String(),
    role: oneOf(roles),
    joined_at: Timestamp,
  }),
  {
    role: "what the person may do in the organization",
    joined_at: "when the person became a member",
  },
);

export const InvitationReply = named(
  "Invitation",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    email: Type.String(),
    role: oneOf(["admin", "member"]),
    status: oneOf(["pending", "accepted", "expired"]),
    invited_by: nullableText,
    created_at: Timestamp,
    expires_at: Timestamp,
    accepted_at: OptionalTimestamp,
  }),
  {
    email: "who is invited",
    role: "what the person may do once a member",
    status: "`expired` after seven days",
    invited_by: "id of the member who invited; null once that user is gone",
    accepted_at: "when the person became a member; null before",
  },
);
export type InvitationReply = Static<typeof InvitationReply>;

export const invitationColumns = (sql: AnySql, now: Date) =>
  sql`id, email, role, invited_by, created_at, expires_at, accepted_at,
      case when accepted_at is not null then 'accepted' when expires_at <= ${now} then 'expired' else 'pending' end
        as status`;

/** A user and an organization, as the documentation shows them. */
export const exampleUser = {
  id: "0b7f9a52-2f3c-4c58-9a3e-0f1d5c7b9e01",
  email: "anna@inn.example",
  first_name: "Anna",
  last_name: "Huber",
  email_verified: true,
  email_verified_at: "2026-11-21T09:30:00.000Z",
  is_platform_admin: false,
  created_at: "2026-11-21T09:00:00.000Z",
};
export const exampleOrganization = {
  id: "7c1d3a94-51e7-4c3b-8f0a-2b6d9e4f1a22",
  name: "The Inn at the Lake",
  api_access_enabled: true,
  created_at: "2026-11-21T09:00:00.000Z",
  updated_at: "2026-11-21T09:00:00.000Z",
  ...wholeLegalProfile(exampleLegalProfile),
};

/** Keeps what the tax service is told to ask of all bookings; settings that are not named stay. */
export async function changeTaxSettings<Settings extends object>(
  sql: AnySql,
  organizationId: string,
  change: Settings,
  now: Date,
): Promise<Settings> {
  const rows = await sql<{ tax_settings: Settings }[]>`
    update organization set tax_settings = tax_settings || ${json(sql, change)}::jsonb, updated_at = ${now}
    where id = ${organizationId} returning tax_settings`;
  return oneRow(rows).tax_settings;
}
