/** The accommodation tax service: its routes, its contract of errors, and its place among the paths. */

import { accountPages } from "#accounts/account_pages.ts";
import { accountRecoveryRoutes } from "#accounts/account_recovery.ts";
import { accountRoutes } from "#accounts/accounts.ts";
import { administrationRoutes } from "#accounts/administration.ts";
import { invitationRoutes } from "#accounts/invitations.ts";
import { organizationRoutes } from "#accounts/organizations.ts";
import { billableWith, requestLogRoutes } from "#accounts/request_log.ts";
import type { Bus } from "#bus/bus.ts";
import { type OpenApiInfo, openApiFor } from "#http/open_api/open_api.ts";
import type { Route } from "#http/route.ts";
import { createService, type Fetch, type ServiceOptions } from "#http/service.ts";
import { taxErrorContract, taxErrorResponse, unknownPathResponse } from "#http/tax_face.ts";
import { openAccessTokens } from "#identity/access_tokens.ts";
import { apiKeyRoutes, openApiKeys } from "#identity/api_keys.ts";
import type { AddressOf } from "#identity/attempt_limits.ts";
import { personalAccessTokenRoutes } from "#identity/personal_access_tokens.ts";
import type { Sql } from "#store/sql.ts";
import { addressRoutes } from "./addresses/addresses.ts";
import { book, type NewBooking } from "./bookings/booking_creation.ts";
import { bookingRoutes } from "./bookings/bookings.ts";
import { createFrozenRules } from "./bookings/frozen_rules.ts";
import { taxSettingsRoutes } from "./bookings/tax_settings.ts";
import { calculate } from "./calculator/calculate.ts";
import type { CalculationAnswer } from "./calculator/calculation_answer.ts";
import type { CalculationRequest } from "./calculator/calculation_request.ts";
import { calculationRoutes } from "./calculator/calculations.ts";
import { bookingInvoiceRoutes } from "./invoices/booking_invoices.ts";
import { invoiceRoutes } from "./invoices/invoices.ts";
import { issuerRoutes } from "./invoices/issuers.ts";
import { liabilityRoutes } from "./liability/liability.ts";
import { coverageRoutes } from "./places/coverage.ts";
import { jurisdictionRoutes } from "./places/jurisdictions.ts";
import { lawChangeRoutes } from "./places/law_changes.ts";
import { placeAt } from "./places/place_at.ts";
import { loadRuleset } from "./rules/rule_files.ts";
import type { Ruleset } from "./rules/ruleset.ts";

export interface TaxServiceDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  addressOf: AddressOf;
  jwtSecret: string;
  requireEmailVerification: boolean;
  /** What all services of the api are served with. */
  serving: Pick<ServiceOptions, "translateError" | "logger" | "metrics" | "newRequestId">;
}

export interface TaxService {
  fetch: Fetch;
  /** For other rooms, on behalf of an organization. @throws CalculationProblem, ApiError */
  stays: Stays;
  close(): Promise<void>;
}

const openApiInfo: OpenApiInfo = {
  title: "Frontdesk accommodation tax",
  version: "0.1.0",
  description:
    "Accounts, organizations, API keys, jurisdictions, tax calculation, addresses and bookings. Success bodies are " +
    "bare; errors are {detail}, a sentence, or with 422 a list of {type, loc, msg}. Numbers may be sent as JSON " +
    "numbers or as decimal strings. Billable calls take X-API-Key or an access token; with both, the key decides.",
};

/** Stays as our own agents quote and book them: live, and by no person and no key. */
export interface Stays {
  quote(request: CalculationRequest): Pick<CalculationAnswer, "tax_breakdown" | "total_with_tax">;
  /** Once for each `idempotency_key`. @returns the booking's id */
  book(organizationId: string, booking: NewBooking): Promise<string>;
}

let loaded: Ruleset | undefined;

/** Read and checked once a process. @throws Error naming every problem of the files */
export function rulesetOnDisk(): Ruleset {
  loaded ??= loadRuleset();
  return loaded;
}

export async function openTaxService(deps: TaxServiceDeps): Promise<TaxService> {
  const { sql, bus, now, addressOf, serving } = deps;
  const accessTokens = await openAccessTokens(deps);
  const apiKeys = await openApiKeys({ sql, bus, now, accessTokens });
  const common = { sql, bus, now, addressOf, accessTokens };
  const accounts = { ...common, requireEmailVerification: deps.requireEmailVerification };
  const ruleset = rulesetOnDisk();
  const locate = (latitude: number, longitude: number) => placeAt(ruleset.places, latitude, longitude);
  const billable = billableWith({ sql, now, logger: serving.logger, guard: apiKeys.billable });
  const bookings = { sql, now, ruleset, frozenRules: createFrozenRules(), locate };
  const routes: Route[] = [
    ...accountRoutes(accounts),
    ...accountRecoveryRoutes(accounts),
    ...organizationRoutes({ ...common, program: apiKeys.billable }),
    ...invitationRoutes(common),
    ...requestLogRoutes(common),
    ...apiKeyRoutes(common),
    ...personalAccessTokenRoutes(common),
    ...administrationRoutes(common),
    ...issuerRoutes({ ...common, guard: apiKeys.billable }),
    ...jurisdictionRoutes({ ruleset, now, guard: apiKeys.billable }),
    ...coverageRoutes({ ruleset, now, guard: apiKeys.billable }),
    ...lawChangeRoutes({ ruleset, guard: apiKeys.billable }),
    ...addressRoutes({ ruleset, ...billable }),
    ...calculationRoutes({ ruleset, now, ...billable }),
    ...bookingRoutes({ ...bookings, ...billable }),
    ...taxSettingsRoutes({ ...common, guard: apiKeys.billable }),
    ...bookingInvoiceRoutes({ sql, now, ...billable }),
    ...invoiceRoutes({ sql, guard: apiKeys.billable }),
    ...liabilityRoutes({ sql, ruleset, guard: apiKeys.billable }),
  ];
  const openApi = openApiFor(openApiInfo, taxErrorContract, routes);
  const fetch = createService({
    ...serving,
    face: taxErrorResponse,
    faceOfUnknown: unknownPathResponse,
    routes,
    documents: { ...accountPages, "/openapi/tax.json": async () => Response.json(openApi) },
  });
  const stays: Stays = {
    quote: (request) => calculate(request, ruleset, { today: now().toISOString().slice(0, 10), locate }),
    async book(organizationId, body) {
      const by = { organizationId, environment: "live", userId: null, apiKeyId: null } as const;
      return (await book(bookings, by, body)).booking.id;
    },
  };
  return {
    fetch,
    stays,
    async close() {
      await apiKeys.close();
      await accessTokens.close();
    },
  };
}
