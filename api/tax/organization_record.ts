/** Users and organizations as the accounts service answers them, and reading them. */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { roles } from "#identity/caller.ts";
import type { AnySql } from "#store/sql.ts";
import { type LegalProfile, LegalProfileReply, wholeLegalProfile } from "./legal_profile.ts";

export const UserReply = Type.Object({
  id: Type.String({ format: "uuid" }),
  email: Type.String(),
  first_name: Type.String(),
  last_name: Type.String(),
  email_verified: Type.Boolean(),
  email_verified_at: OptionalTimestamp,
  is_platform_admin: Type.Boolean(),
  created_at: Timestamp,
});
export type UserReply = Static<typeof UserReply>;

export const userColumns = (sql: AnySql) =>
  sql`id, email, first_name, last_name, email_verified_at is not null as email_verified, email_verified_at,
      is_platform_admin, created_at`;

export const OrganizationReply = Type.Composite([
  Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    api_access_enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  LegalProfileReply,
]);
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

export const MemberReply = Type.Object({
  user_id: Type.String({ format: "uuid" }),
  email: Type.String(),
  first_name: Type.String(),
  last_name: Type.String(),
  role: oneOf(roles),
  joined_at: Timestamp,
});

export const InvitationReply = Type.Object({
  id: Type.String({ format: "uuid" }),
  email: Type.String(),
  role: oneOf(["admin", "member"]),
  status: oneOf(["pending", "accepted", "expired"]),
  invited_by: nullableText,
  created_at: Timestamp,
  expires_at: Timestamp,
  accepted_at: OptionalTimestamp,
});
export type InvitationReply = Static<typeof InvitationReply>;

export const invitationColumns = (sql: AnySql, now: Date) =>
  sql`id, email, role, invited_by, created_at, expires_at, accepted_at,
      case when accepted_at is not null then 'accepted' when expires_at <= ${now} then 'expired' else 'pending' end
        as status`;
