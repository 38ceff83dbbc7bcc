/**
 * `/v1/orgs/me/tax-settings`: what an organization asks of each of its bookings that does not say so
 * itself, when it is made and when it is adjusted. Single calculations ask for it themselves.
 */

import { type Static, Type } from "@sinclair/typebox";
import { changeTaxSettings } from "#accounts/organization_record.ts";
import { named } from "#contracts/named_schema.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import type { AccessTokens } from "#identity/access_tokens.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";
import type { CalculationRequest } from "../calculator/calculation_request.ts";

const path = "/v1/orgs/me/tax-settings";

const words = {
  require_complete: "bookings are refused where a tax that may exist is unknown or its tariff lapsed",
  accept_assumed: "false: refused as well where a tax is reported by one source alone or taken to go on",
  strict: "bookings with fields that nobody reads are refused",
};
const TaxSettings = named(
  "TaxSettings",
  Type.Object({ require_complete: Type.Boolean(), accept_assumed: Type.Boolean(), strict: Type.Boolean() }),
  words,
);
export type TaxSettings = Static<typeof TaxSettings>;
const TaxSettingsChange = named("TaxSettingsChange", Type.Partial(Type.Object(TaxSettings.properties)), words);

const unlessSet: TaxSettings = { require_complete: false, accept_assumed: true, strict: false };

interface SettingsDeps {
  sql: Sql;
  now(): Date;
  accessTokens: Pick<AccessTokens, "member">;
  /** Who may read them. */
  guard: Guard<BillableCaller>;
}

export function taxSettingsRoutes({ sql, now, accessTokens, guard }: SettingsDeps): Route[] {
  return [
    route({
      method: "GET",
      path,
      summary: "What the organization asks of its bookings that do not say so themselves",
      guard,
      reply: { status: 200, body: TaxSettings },
      examples: { unless_set: { answer: unlessSet } },
      handle: ({ principal }) => taxSettingsOf(sql, principal.organizationId),
    }),
    route({
      method: "PATCH",
      path,
      summary: "Change what is asked of bookings from now on; settings that are not named stay",
      guard: accessTokens.member,
      body: TaxSettingsChange,
      strictBody: true,
      reply: { status: 200, body: TaxSettings },
      errors: ["forbidden"],
      examples: { only_what_is_known: { body: { require_complete: true } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        return { ...unlessSet, ...(await changeTaxSettings(sql, principal.organizationId, body, now())) };
      },
    }),
  ];
}

export async function taxSettingsOf(sql: AnySql, organizationId: string): Promise<TaxSettings> {
  const rows = await sql<{ tax_settings: Partial<TaxSettings> }[]>`
    select tax_settings from organization where id = ${organizationId}`;
  return { ...unlessSet, ...oneRow(rows).tax_settings };
}

/** The calculation with what the organization asks of all, where it says nothing itself. */
export function withSettings(calculation: CalculationRequest, settings: TaxSettings): CalculationRequest {
  const { require_complete = settings.require_complete, accept_assumed = settings.accept_assumed } = calculation;
  return { ...calculation, require_complete, accept_assumed };
}
