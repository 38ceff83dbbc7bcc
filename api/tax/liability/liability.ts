/**
 * `GET /v1/liability`: what is owed, by place, authority, category and currency, from the ledger that
 * bookings write. Adjustments, refunds and voids are in it as what they took away. As JSON, or as CSV
 * for a request that accepts `text/csv`.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { nullableText } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import type { Sql } from "#store/sql.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational } from "../calculator/numbers/rational.ts";
import { ruleKinds } from "../rules/rule.ts";
import { isCalendarDate, type Ruleset } from "../rules/ruleset.ts";
import { acceptsCsv, csvResponse } from "./csv_response.ts";

/**
 * The day by which an amount falls into a period. With `checkout` and `checkin` all of a booking's tax
 * falls on the day on which its stay, as it is now, ends or begins; `recorded` takes each change on
 * the day (UTC) on which it was made, so that a refund lowers the period in which it was given.
 */
const dateAnchors = ["checkout", "checkin", "recorded"] as const;
const periods = ["month", "quarter", "year"] as const;

const LiabilityItem = named(
  "LiabilityItem",
  Type.Object({
    period: Type.Unsafe<string | null>({ type: ["string", "null"], description: "2026-03, 2026-Q1 or 2026, as asked" }),
    jurisdiction_code: Type.String(),
    jurisdiction_name: nullableText,
    authority: Type.String(),
    kind: Type.String(),
    category_code: Type.String(),
    collector: Type.String({ description: "who takes the tax from the guest and owes it" }),
    currency: Type.String(),
    bookings: Type.Integer({ description: "that something is left of" }),
    taxable_amount: Type.String({ description: "what percentages were taken of; 0 for flat taxes" }),
    tax_amount: Type.String(),
  }),
  {
    jurisdiction_code: "the place that levies the tax",
    jurisdiction_name: "that place's name; null of a place that is no more",
    authority: "who is owed",
    kind: "what kind of tax",
    category_code: "what kind of VAT, fee or levy more exactly",
    tax_amount: "what is owed",
  },
);
type LiabilityItem = Static<typeof LiabilityItem>;

const Liability = named(
  "Liability",
  Type.Object({
    environment: oneOf(["live", "test"]),
    date_anchor: oneOf(dateAnchors),
    from: nullableText,
    to: nullableText,
    items: Type.Array(LiabilityItem),
    totals: Type.Array(
      named("LiabilityTotal", Type.Object({ currency: Type.String(), tax_amount: Type.String() }), {
        tax_amount: "what is owed in this currency",
      }),
    ),
  }),
  {
    environment: "`live`, or `test` by test keys",
    date_anchor: "what a tax is dated by",
    from: "first day; null: from the beginning",
    to: "last day; null: to the end",
    items: "what is owed, by whom and to whom",
    totals: "by currency; currencies are never added up",
  },
);

const date = (description: string) => Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description }));
const query = {
  from: date("a date as YYYY-MM-DD: the first day"),
  to: date("a date as YYYY-MM-DD: the last day"),
  date_anchor: Type.Optional({
    ...oneOf(dateAnchors),
    about: "what a tax is dated by: the departure (default), the arrival, or the change that made it",
  }),
  period: Type.Optional({ ...oneOf(periods), about: "sum up by this; in all unless given" }),
  jurisdiction_code: Type.Optional(Type.String({ maxLength: 40, about: "taxes of this place alone" })),
  kind: Type.Optional({ ...oneOf(ruleKinds), about: "taxes of this kind alone" }),
  collector: Type.Optional(Type.String({ maxLength: 40, about: "taxes that this party owes alone" })),
};
type Query = Static<ReturnType<typeof Type.Object<typeof query>>>;

export function liabilityRoutes({
  sql,
  ruleset,
  guard,
}: {
  sql: Sql;
  ruleset: Ruleset;
  guard: Guard<BillableCaller>;
}): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/liability",
      summary: "What is owed to whom; as CSV for Accept: text/csv",
      guard,
      query,
      reply: { status: 200, body: Liability },
      examples: {
        of_one_quarter: { query: { from: "2026-04-01", to: "2026-06-30" } },
        by_month_of_change: { query: { period: "month", date_anchor: "recorded", kind: "accommodation" } },
      },
      handle: async ({ principal, query, request }) => {
        for (const field of ["from", "to"] as const) {
          const day = query[field];
          if (day === undefined || isCalendarDate(day)) continue;
          throw invalidRequest("query", field, `Expected a day of the calendar, got ${day}`);
        }
        const rows = await owed(sql, principal, query);
        const items = rows.map((row) => ({
          ...row,
          jurisdiction_name: ruleset.placeOf(row.jurisdiction_code)?.name ?? null,
        }));
        if (acceptsCsv(request)) {
          return csvResponse("liability.csv", [columns, ...items.map((item) => columns.map((column) => item[column]))]);
        }
        return {
          environment: principal.environment,
          date_anchor: query.date_anchor ?? "checkout",
          from: query.from ?? null,
          to: query.to ?? null,
          items,
          totals: totalsOf(items),
        };
      },
    }),
  ];
}

async function owed(
  sql: Sql,
  { organizationId, environment }: BillableCaller,
  { from, to, date_anchor = "checkout", period, jurisdiction_code, kind, collector }: Query,
): Promise<Omit<LiabilityItem, "jurisdiction_name">[]> {
  const day = {
    checkout: sql`booking.checkout_date`,
    checkin: sql`booking.stay_date`,
    recorded: sql`(entry.recorded_at at time zone 'UTC')::date`,
  }[date_anchor];
  const format = period && { month: "YYYY-MM", quarter: 'YYYY-"Q"Q', year: "YYYY" }[period];
  const only = (column: string, value: string | undefined) =>
    value === undefined ? sql`` : sql`and ${sql(`entry.${column}`)} = ${value}`;
  return sql<LiabilityItem[]>`
    select period, jurisdiction_code, authority, kind, category_code, collector, currency,
           count(*) filter (where tax_amount <> 0 or taxable_amount <> 0)::integer as bookings,
           sum(taxable_amount) as taxable_amount, sum(tax_amount) as tax_amount
    from (
      select ${format ? sql`to_char(${day}, ${format})` : sql`null`} as period, entry.booking_id,
             entry.jurisdiction_code, entry.authority, entry.kind, entry.category_code, entry.collector,
             entry.currency, sum(entry.taxable_amount) as taxable_amount, sum(entry.tax_amount) as tax_amount
      from tax_entries as entry join bookings as booking on booking.id = entry.booking_id
      where entry.organization_id = ${organizationId} and entry.environment = ${environment}
        ${from === undefined ? sql`` : sql`and ${day} >= ${from}`}
        ${to === undefined ? sql`` : sql`and ${day} <= ${to}`}
        ${only("jurisdiction_code", jurisdiction_code)} ${only("kind", kind)} ${only("collector", collector)}
      group by 1, 2, 3, 4, 5, 6, 7, 8
    ) as by_booking
    group by period, jurisdiction_code, authority, kind, category_code, collector, currency
    having sum(tax_amount) <> 0 or sum(taxable_amount) <> 0
    order by period, jurisdiction_code, authority, kind, category_code, collector, currency`;
}

function totalsOf(items: readonly LiabilityItem[]): { currency: string; tax_amount: string }[] {
  const totals = new Map<string, Rational>();
  for (const { currency, tax_amount } of items) {
    totals.set(currency, (totals.get(currency) ?? Rational.zero).plus(Rational.parse(tax_amount)));
  }
  return [...totals].map(([currency, total]) => ({ currency, tax_amount: total.toFixed(minorDigitsOf(currency)) }));
}

const columns = [
  "period",
  "jurisdiction_code",
  "jurisdiction_name",
  "authority",
  "kind",
  "category_code",
  "collector",
  "currency",
  "bookings",
  "taxable_amount",
  "tax_amount",
] as const satisfies readonly (keyof LiabilityItem)[];
