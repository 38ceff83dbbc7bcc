/**
 * Booked stays to come, reckoned again by today's law: `POST /v1/bookings/recheck`, the reports of it,
 * and the nightly job. A report says what would change and changes nothing: `adjust` with `law: today`
 * does, booking by booking.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import { json, type Sql } from "#store/sql.ts";
import type { BookingDeps } from "../bookings/booking_deps.ts";
import type { BookingOwner } from "../bookings/booking_record.ts";
import { calculateWith } from "../calculator/calculate.ts";
import type { CalculationAnswer } from "../calculator/calculation_answer.ts";
import { CalculationProblem, type CalculationRequest } from "../calculator/calculation_request.ts";
import { acceptsCsv, csvResponse } from "../liability/csv_response.ts";
import { isCalendarDate, type Ruleset } from "../rules/ruleset.ts";
import { lawDifference, RecheckRow } from "./law_difference.ts";

/** Bookings that one request looks at: what takes longer is the nightly job's. */
const bookingsMax = 20_000;
/** What so many may take a busy api. */
const recheckMsMax = 60_000;
/** Read at once; between two pages others have their turn. */
const pageSize = 200;
const rowsMax = 1000;

const CalendarDate = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "a date as YYYY-MM-DD" });

const RecheckRequest = named(
  "Recheck",
  Type.Object({
    from: Type.Optional(CalendarDate),
    to: Type.Optional(CalendarDate),
    dry_run: Type.Optional(Type.Boolean({ description: "true: answer the report and keep none" })),
  }),
  {
    from: "stays with a night from this day on; today unless given",
    to: "stays with a night until this day",
  },
);

const reportFields = {
  id: nullableText,
  environment: oneOf(["live", "test"]),
  night: nullableText,
  from: nullableText,
  to: nullableText,
  bookings: Type.Integer({ description: "with a night to come that were looked at" }),
  total: Type.Integer({ description: "of them, those that today's law would change" }),
  created_at: Timestamp,
};
const RecheckSummary = named("RecheckSummary", Type.Object(reportFields), {
  id: "its id; null of a report that is not kept",
  environment: "`live`, or `test` by test keys",
  night: "the night whose change of law asked for it; null: somebody did",
  from: "first night that was looked at",
  to: "last night that was looked at; null: to the end",
});
const RecheckReport = named(
  "RecheckReport",
  Type.Object({
    ...RecheckSummary.properties,
    rows: Type.Array(RecheckRow, { description: "as many as fit the page" }),
  }),
);
type RecheckReport = Static<typeof RecheckReport>;

const paging = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: rowsMax, description: "rows; default 100" })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000_000, about: "how many are passed over" })),
};

export function recheckRoutes(deps: BookingDeps): Route[] {
  const { sql, guard, now, ruleset } = deps;
  return [
    route({
      method: "POST",
      path: "/v1/bookings/recheck",
      waitsMs: recheckMsMax,
      summary: "Reckon booked stays to come by today's law; a report, nothing is changed",
      guard,
      record: deps.record,
      body: RecheckRequest,
      strictBody: true,
      reply: { status: 200, body: RecheckReport },
      errors: ["bad_request"],
      examples: {
        all_to_come: { body: {} },
        of_one_summer: { body: { from: "2027-06-01", to: "2027-08-31", dry_run: true } },
      },
      handle: async ({ principal, body: { from, to, dry_run } }) => {
        for (const [field, day] of Object.entries({ from, to })) {
          if (day !== undefined && !isCalendarDate(day))
            throw invalidRequest("body", field, `Expected a day of the calendar, got ${day}`);
        }
        const at = now();
        const found = await recheck({ sql, ruleset }, principal, { today: dayOf(at), from, to, bookingsMax });
        const report = { ...found, night: null, from: from ?? null, to: to ?? null, at };
        const id = dry_run ? null : await keepReport(sql, principal, report);
        const { environment } = principal;
        const rows = found.rows.slice(0, rowsMax);
        return { id, environment, ...summaryOf(report), rows };
      },
    }),
    route({
      method: "GET",
      path: "/v1/recheck-reports",
      summary: "List recheck reports, the newest first, without their rows",
      guard,
      query: paging,
      reply: {
        status: 200,
        body: named("RecheckSummaries", Type.Object({ items: Type.Array(RecheckSummary) }), {
          items: "the latest first",
        }),
      },
      examples: { newest: { query: { limit: 10 } } },
      handle: async ({ principal, query: { limit = 100, offset = 0 } }) => {
        const items = await sql<Omit<RecheckReport, "rows">[]>`
          select ${reportColumns(sql)} from recheck_reports as report
          where organization_id = ${principal.organizationId} and environment = ${principal.environment}
          order by position desc limit ${limit} offset ${offset}`;
        return { items };
      },
    }),
    route({
      method: "GET",
      path: "/v1/recheck-reports/{report_id}",
      summary: "Get a recheck report; its rows as CSV for Accept: text/csv",
      guard,
      query: paging,
      reply: { status: 200, body: RecheckReport },
      paramsFrom: { report_id: { route: "POST /v1/bookings/recheck", field: "id" } },
      examples: { its_first_rows: { query: { limit: 50 } } },
      handle: async ({ principal, params, query: { limit = 100, offset = 0 }, request }) => {
        const [report] = await sql<Omit<RecheckReport, "rows">[]>`
          select ${reportColumns(sql)} from recheck_reports as report
          where id = ${params.report_id} and organization_id = ${principal.organizationId}
            and environment = ${principal.environment}`;
        if (!report) throw new ApiError("not_found");
        const kept = await sql<{ row: RecheckRow }[]>`
          select row from recheck_rows where report_id = ${params.report_id} order by position limit ${limit} offset ${offset}`;
        const rows = kept.map(({ row }) => row);
        if (acceptsCsv(request)) return csvResponse("recheck.csv", [columns, ...rows.map(csvRow)]);
        return { ...report, rows };
      },
    }),
  ];
}

const dayOf = (at: Date) => at.toISOString().slice(0, 10);

const reportColumns = (sql: Sql) => sql`
  id, environment, night::text, stay_from::text as "from", stay_to::text as "to", bookings,
  (select count(*)::integer from recheck_rows where report_id = report.id) as total, created_at`;

const columns = [
  "booking_id",
  "external_reference",
  "jurisdiction_code",
  "stay_date",
  "checkout_date",
  "currency",
  "stored_tax",
  "tax_now",
  "delta",
  "cause",
  "rule_ids",
  "note",
] as const satisfies readonly (keyof RecheckRow)[];

const csvRow = (row: RecheckRow) =>
  columns.map((column) => (column === "rule_ids" ? row.rule_ids.join(" ") : row[column]));

interface Rechecked {
  bookings: number;
  rows: RecheckRow[];
}

interface NewReport extends Rechecked {
  night: string | null;
  from: string | null;
  to: string | null;
  at: Date;
}

function summaryOf({ night, from, to, bookings, rows, at }: NewReport) {
  return { night, from, to, bookings, total: rows.length, created_at: at };
}

interface Booked {
  id: string;
  position: string;
  external_reference: string | null;
  jurisdiction_code: string;
  stay_date: string;
  checkout_date: string;
  currency: string;
  total_tax: string;
  calculated_on: string;
  request: CalculationRequest;
  answer: CalculationAnswer;
}

/**
 * All open bookings of an owner with a night to come on `today`, page by page.
 * @throws ApiError bad_request for more of them than `bookingsMax`
 */
async function recheck(
  { sql, ruleset }: { sql: Sql; ruleset: Ruleset },
  { organizationId, environment }: BookingOwner,
  {
    today,
    from,
    to,
    bookingsMax = Number.POSITIVE_INFINITY,
  }: { today: string; from?: string | undefined; to?: string | undefined; bookingsMax?: number },
): Promise<Rechecked> {
  const rows: RecheckRow[] = [];
  let bookings = 0;
  let after = "0";
  for (;;) {
    // Those booked by the law as it is now need no look: their rules have the same fingerprint.
    const page = await sql<(Booked & { ruleset_hash: string })[]>`
      select id, position, external_reference, jurisdiction_code, stay_date::text, checkout_date::text, currency,
             total_tax, calculated_on::text, ruleset_hash, request, answer
      from bookings
      where organization_id = ${organizationId} and environment = ${environment} and position > ${after}
        and checkout_date > ${today} and state in ('confirmed', 'adjusted', 'partially_refunded')
        ${from === undefined ? sql`` : sql`and checkout_date > ${from}`}
        ${to === undefined ? sql`` : sql`and stay_date <= ${to}`}
      order by position limit ${pageSize}`;
    bookings += page.length;
    if (bookings > bookingsMax)
      throw new ApiError("bad_request", { detail: `more than ${bookingsMax} bookings: name a narrower range of days` });
    for (const booking of page) {
      const place = ruleset.rulesIn(booking.jurisdiction_code);
      if (place && place.hash === booking.ruleset_hash) continue;
      const row = recheckRow(booking, ruleset);
      if (row) rows.push(row);
    }
    after = page.at(-1)?.position ?? after;
    if (page.length < pageSize) return { bookings, rows };
  }
}

function recheckRow(booking: Booked, ruleset: Ruleset): RecheckRow | undefined {
  const { id, external_reference, jurisdiction_code, stay_date, checkout_date, currency, total_tax } = booking;
  const known = {
    booking_id: id,
    external_reference,
    jurisdiction_code,
    stay_date,
    checkout_date,
    currency,
    stored_tax: total_tax,
  };
  const refused = (note: string): RecheckRow => ({
    ...known,
    tax_now: null,
    delta: null,
    cause: "not_calculable",
    rule_ids: [],
    note,
  });
  const place = ruleset.rulesIn(jurisdiction_code);
  if (!place) return refused(`There is no place ${jurisdiction_code} any more`);
  try {
    // What was accepted when it was booked is no reason to refuse a report.
    const { require_complete: _, accept_assumed: _assumed, ...stay } = booking.request;
    const difference = lawDifference(booking.answer, calculateWith(place, stay, booking.calculated_on));
    return difference && { ...known, ...difference, note: null };
  } catch (error) {
    if (!(error instanceof CalculationProblem)) throw error;
    return refused(error.message);
  }
}

/** @returns its id, or null where the night has a report already */
async function keepReport(sql: Sql, owner: BookingOwner, report: NewReport): Promise<string | null> {
  const id = crypto.randomUUID();
  const rows = report.rows.map((row, position) => ({ position, booking_id: row.booking_id, row }));
  // One statement: a report is whole or not there.
  const kept = await sql`
    with report as (
      insert into recheck_reports (id, organization_id, environment, night, stay_from, stay_to, bookings, created_at)
      values (${id}, ${owner.organizationId}, ${owner.environment}, ${report.night}, ${report.from}, ${report.to},
              ${report.bookings}, ${report.at})
      on conflict on constraint recheck_reports_night_key do nothing
      returning id
    ), rows as (
      insert into recheck_rows (report_id, position, booking_id, row)
      select report.id, one.position, one.booking_id, one.row
      from report cross join json_to_recordset(${json(sql, rows)}) as one(position integer, booking_id uuid, row json)
    )
    select id from report`;
  return kept.length > 0 ? id : null;
}

/** The nightly job: a report for each organization whose stays to come today's law changes. Twice is as good as once. */
export async function recheckNightly({
  sql,
  ruleset,
  now,
}: Pick<BookingDeps, "sql" | "ruleset" | "now">): Promise<number> {
  const at = now();
  const night = dayOf(at);
  const owners = await sql<{ organization_id: string; environment: BookingOwner["environment"] }[]>`
    select distinct organization_id, environment from bookings as booking
    where checkout_date > ${night} and state in ('confirmed', 'adjusted', 'partially_refunded')
      and not exists (
        select from recheck_reports
        where organization_id = booking.organization_id and environment = booking.environment and night = ${night})`;
  let reports = 0;
  for (const { organization_id, environment } of owners) {
    const owner = { organizationId: organization_id, environment };
    const found = await recheck({ sql, ruleset }, owner, { today: night });
    if (found.rows.length === 0) continue;
    const kept = await keepReport(sql, owner, { ...found, night, from: null, to: null, at });
    if (kept) reports++;
  }
  return reports;
}
