/**
 * Bookings under a law of the test's own: their routes over a database, without the rest of the
 * service. Another law can be put in force under bookings that are there.
 */
import assert from "node:assert/strict";
import type { Logger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import type { Guard } from "#http/route.ts";
import { createService, type Fetch } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import type { Sql } from "#store/sql.ts";
import { bookingRoutes } from "#tax/bookings/bookings.ts";
import { createFrozenRules } from "#tax/bookings/frozen_rules.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { liabilityRoutes } from "#tax/liability/liability.ts";
import type { Rule } from "#tax/rules/rule.ts";
import type { Answer } from "../api_harness.ts";
import { createTestDatabase } from "../database.ts";
import { rulesetOf } from "./calculation_fixture.ts";

export interface BookingDesk {
  sql: Sql;
  /** A request by `caller`. */
  call(method: string, path: string, body?: unknown): Promise<Omit<Answer, "headers">>;
  fetch(path: string, options: RequestInit): Promise<Response>;
  /** Books two nights in June at 100 in the city, with changes. */
  book(calculation?: Partial<CalculationRequest>): Promise<Answer["body"]>;
  /** A change that must succeed. */
  change(id: string, action: "adjust" | "refund" | "void", body?: unknown): Promise<Answer["body"]>;
  /** From now on the rules on disk are these, and the process is a new one. */
  enact(rules: readonly Rule[]): void;
  /** Who asks: a live organization of the desk's own unless a test puts another here. */
  caller: BillableCaller;
  /** The time of the desk. */
  at: Date;
  close(): Promise<void>;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Logger;

export async function openBookingDesk(rules: readonly Rule[]): Promise<BookingDesk> {
  const database = await createTestDatabase();
  const { sql, productSql } = database;
  const [organization] = await sql<{ id: string }[]>`insert into organization (name) values ('Inn') returning id`;
  assert(organization);
  let service: Fetch;
  const guard: Guard<BillableCaller> = { scheme: "api_key_or_access_token", check: async () => desk.caller };
  const desk: BookingDesk = {
    sql,
    caller: { organizationId: organization.id, environment: "live", userId: null, apiKeyId: null },
    at: new Date("2026-06-01T10:00:00Z"),
    async call(method, path, body) {
      const response = await desk.fetch(path, {
        method,
        headers: { "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
    fetch: (path, options) => service(new Request(`http://desk.test${path}`, options)),
    async book(calculation = {}) {
      const stay = {
        jurisdiction_code: "NL-TST",
        stay_date: "2026-06-10",
        nights: 2,
        nightly_rate: 100,
        currency: "EUR",
      };
      const { status, body } = await desk.call("POST", "/v1/bookings", { calculation: { ...stay, ...calculation } });
      assert.equal(status, 201, JSON.stringify(body));
      return body;
    },
    async change(id, action, change = {}) {
      const { status, body } = await desk.call("POST", `/v1/bookings/${id}/${action}`, change);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    enact(enacted) {
      const ruleset = rulesetOf(enacted);
      const frozenRules = createFrozenRules();
      const now = () => desk.at;
      const routes = [
        ...bookingRoutes({
          sql: productSql,
          ruleset,
          frozenRules,
          guard,
          now,
          record: async () => undefined,
          locate: () => undefined,
        }),
        ...liabilityRoutes({ sql: productSql, ruleset, guard }),
      ];
      service = createService({
        routes,
        face: taxErrorResponse,
        logger: silent,
        metrics: createRequestMetrics(),
        newRequestId: () => crypto.randomUUID(),
      });
    },
    close: () => database.drop(),
  };
  desk.enact(rules);
  return desk;
}
