/**
 * Issuers: sellers beside the organization itself, each with the legal fields of an invoice, a time
 * zone and a number series of its own. One that is archived takes no new bookings; what it sold goes
 * on to be invoiced and credited.
 */

import { type Static, Type } from "@sinclair/typebox";
import {
  changedLegalProfile,
  type LegalProfile,
  LegalProfileChange,
  LegalProfileReply,
  legalFields,
  wholeLegalProfile,
} from "#accounts/legal_profile.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import type { AccessTokens } from "#identity/access_tokens.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { type AnySql, json, oneRow, type Sql } from "#store/sql.ts";

const path = "/v1/issuers";
const createdId = { issuer_id: { route: `POST ${path}`, field: "id" } };

const NewIssuer = named(
  "NewIssuer",
  Type.Object({ ...LegalProfileChange.properties, legal_name: legalFields.legal_name }),
  {
    legal_name: "the name as the register has it",
  },
);

const IssuerReply = named(
  "Issuer",
  Type.Composite([
    Type.Object({
      id: Type.String({ format: "uuid" }),
      created_at: Timestamp,
      updated_at: Timestamp,
      archived_at: OptionalTimestamp,
    }),
    LegalProfileReply,
  ]),
  {
    archived_at: "when it was archived; null while it issues invoices",
  },
);
type IssuerReply = Static<typeof IssuerReply>;

interface IssuerRow {
  id: string;
  legal_profile: LegalProfile;
  created_at: Date;
  updated_at: Date;
  archived_at: Date | null;
}

const issuerColumns = (sql: AnySql) => sql`id, legal_profile, created_at, updated_at, archived_at`;

const issuerReply = ({ legal_profile, ...issuer }: IssuerRow): IssuerReply => ({
  ...issuer,
  ...wholeLegalProfile(legal_profile),
});

export interface IssuerDeps {
  sql: Sql;
  now(): Date;
  accessTokens: Pick<AccessTokens, "member">;
  /** Who may read them. */
  guard: Guard<BillableCaller>;
}

export function issuerRoutes({ sql, now, accessTokens, guard }: IssuerDeps): Route[] {
  /** Programs with a key, which an administrator made, and administrators themselves. */
  const administrator: Guard<BillableCaller> = {
    ...guard,
    check: async (request) => {
      const caller = await guard.check(request);
      if (caller.apiKeyId === null) requireAdministrator(await accessTokens.member.check(request));
      return caller;
    },
  };
  return [
    route({
      method: "POST",
      path,
      summary: "Create an issuer: a seller beside the organization itself",
      guard: administrator,
      body: NewIssuer,
      strictBody: true,
      reply: { status: 201, body: IssuerReply },
      errors: ["forbidden"],
      examples: {
        a_second_hotel: {
          body: {
            legal_name: "Hotel am See GmbH",
            vat_id: "DE123456789",
            address_line1: "Seestrasse 1",
            city: "Baden-Baden",
            postal_code: "76530",
            country: "DE",
            time_zone: "Europe/Berlin",
            invoice_series: "SEE",
          },
        },
      },
      handle: async ({ principal, body }) => {
        const at = now();
        const rows = await sql<IssuerRow[]>`
          insert into issuers (organization_id, legal_profile, created_at, updated_at)
          values (${principal.organizationId}, ${json(sql, changedLegalProfile({}, body))}, ${at}, ${at})
          returning ${issuerColumns(sql)}`;
        return issuerReply(oneRow(rows));
      },
    }),
    route({
      method: "GET",
      path,
      summary: "List issuers, newest first; X-Total-Count says how many there are",
      guard,
      query: {
        include_archived: Type.Optional(Type.Boolean({ description: "default false" })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "default 50" })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, about: "how many are passed over" })),
      },
      reply: { status: 200, body: named("Issuers", Type.Array(IssuerReply)) },
      examples: { archived_ones_too: { query: { include_archived: true, limit: 10 } } },
      handle: async ({ principal: { organizationId }, query }) => {
        const archived = query.include_archived ? sql`true` : sql`archived_at is null`;
        const [rows, counts] = await Promise.all([
          sql<IssuerRow[]>`
            select ${issuerColumns(sql)} from issuers where organization_id = ${organizationId} and ${archived}
            order by position desc limit ${query.limit ?? 50} offset ${query.offset ?? 0}`,
          sql<{ count: number }[]>`
            select count(*)::integer as count from issuers where organization_id = ${organizationId} and ${archived}`,
        ]);
        return Response.json(rows.map(issuerReply), { headers: { "x-total-count": String(oneRow(counts).count) } });
      },
    }),
    route({
      method: "GET",
      path: `${path}/{issuer_id}`,
      summary: "Get an issuer, archived or not",
      guard,
      paramsFrom: createdId,
      examples: { one: {} },
      reply: { status: 200, body: IssuerReply },
      handle: async ({ principal, params }) =>
        issuerReply(
          found(
            await sql<IssuerRow[]>`
              select ${issuerColumns(sql)} from issuers
              where id = ${params.issuer_id} and organization_id = ${principal.organizationId}`,
          ),
        ),
    }),
    route({
      method: "PATCH",
      path: `${path}/{issuer_id}`,
      summary: "Set fields of an issuer, or clear them with null; invoices that were issued stay as they are",
      guard: administrator,
      body: LegalProfileChange,
      strictBody: true,
      paramsFrom: createdId,
      reply: { status: 200, body: IssuerReply },
      errors: ["forbidden", "conflict"],
      examples: { another_contact: { body: { contact_name: "Accounts", contact_phone: null } } },
      handle: async ({ principal, params, body }) => {
        if (body.legal_name === null) throw invalidRequest("body", "legal_name", "Expected a name: an issuer has one");
        return sql.begin(async (transaction) => {
          const issuer = await lockIssuer(transaction, principal.organizationId, params.issuer_id);
          if (issuer.archived_at) {
            throw new ApiError("conflict", { detail: "Cannot change the issuer: it is archived" });
          }
          const rows = await transaction<IssuerRow[]>`
            update issuers
            set legal_profile = ${json(transaction, changedLegalProfile(issuer.legal_profile, body))}, updated_at = ${now()}
            where id = ${issuer.id} returning ${issuerColumns(transaction)}`;
          return issuerReply(oneRow(rows));
        });
      },
    }),
    route({
      method: "POST",
      path: `${path}/{issuer_id}/archive`,
      summary: "Archive an issuer: no new bookings; archiving it again changes nothing",
      guard: administrator,
      body: named("Nothing", Type.Object({})),
      strictBody: true,
      paramsFrom: createdId,
      reply: { status: 200, body: IssuerReply },
      errors: ["forbidden"],
      examples: { for_good: {} },
      handle: async ({ principal, params }) => {
        const at = now();
        return issuerReply(
          found(
            await sql<IssuerRow[]>`
              update issuers set archived_at = coalesce(archived_at, ${at}),
                updated_at = case when archived_at is null then ${at} else updated_at end
              where id = ${params.issuer_id} and organization_id = ${principal.organizationId}
              returning ${issuerColumns(sql)}`,
          ),
        );
      },
    }),
  ];
}

/**
 * Makes sure that a new booking may name this issuer. The issuer cannot be archived before the
 * transaction ends.
 * @throws ApiError not_found when it is no issuer of the organization, bad_request with the field when it is archived
 */
export async function requireUsableIssuer(tx: AnySql, organizationId: string, issuerId: string): Promise<void> {
  const [row] = await tx<{ archived_at: Date | null }[]>`
    select archived_at from issuers where id = ${issuerId} and organization_id = ${organizationId} for share`;
  if (!row) throw new ApiError("not_found", { detail: "No such issuer" });
  if (row.archived_at) throw invalidRequest("body", "issuer_id", "Expected an issuer that is not archived");
}

/** Whether the seller charges VAT: the issuer, or the organization itself; undefined where nobody has said. */
export async function vatStatusOf(
  sql: AnySql,
  organizationId: string,
  issuerId: string | null,
): Promise<LegalProfile["vat_status"]> {
  const [row] = issuerId
    ? await sql<Pick<IssuerRow, "legal_profile">[]>`
        select legal_profile from issuers where id = ${issuerId} and organization_id = ${organizationId}`
    : await sql<Pick<IssuerRow, "legal_profile">[]>`
        select legal_profile from organization where id = ${organizationId}`;
  return row?.legal_profile.vat_status;
}

async function lockIssuer(tx: AnySql, organizationId: string, id: string): Promise<IssuerRow> {
  return found(
    await tx<IssuerRow[]>`
      select ${issuerColumns(tx)} from issuers where id = ${id} and organization_id = ${organizationId} for update`,
  );
}

function found([row]: readonly IssuerRow[]): IssuerRow {
  if (!row) throw new ApiError("not_found");
  return row;
}
