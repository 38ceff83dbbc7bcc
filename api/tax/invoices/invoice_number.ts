/**
 * Invoice numbers: without a gap from 1 for each seller, type, series and fiscal year, test keys
 * apart. The last number's row stays locked until the transaction ends, so a number that is not
 * used goes to the next in line.
 */

import type { LegalProfile } from "#accounts/legal_profile.ts";
import { type AnySql, oneRow } from "#store/sql.ts";

export interface Series {
  organizationId: string;
  /** Null: the organization itself sells. */
  issuerId: string | null;
  environment: "live" | "test";
  type: "invoice" | "credit_note";
}

export interface TakenNumber {
  series: string;
  fiscal_year: number;
  sequence: number;
  number: string;
  /** YYYY-MM-DD, of the seller's time zone. */
  issue_date: string;
}

const seriesDefault = "INV";

/** The day in a time zone, YYYY-MM-DD. The zone is one that was checked when it was set. */
export function dayIn(timeZone: string, at: Date): string {
  const parts = new Intl.DateTimeFormat("en", {
    timeZone,
    calendar: "gregory",
    numberingSystem: "latn",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  }).formatToParts(at);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "";
  return `${part("year").padStart(4, "0")}-${part("month")}-${part("day")}`;
}

/**
 * `SEE-2026-000042`; of test keys `TEST.SEE-…`, of credit notes `CN.SEE-…`. A series has no dot in it,
 * so that no two series make the same number.
 */
export function numberText(
  { environment, type }: Pick<Series, "environment" | "type">,
  taken: Omit<TakenNumber, "number" | "issue_date">,
) {
  const prefix = `${environment === "test" ? "TEST." : ""}${type === "credit_note" ? "CN." : ""}`;
  return `${prefix}${taken.series}-${taken.fiscal_year}-${String(taken.sequence).padStart(6, "0")}`;
}

/** Takes the next number, inside of the transaction that inserts what bears it. The fiscal year is the calendar's. */
export async function takeNumber(tx: AnySql, of: Series, seller: LegalProfile, now: Date): Promise<TakenNumber> {
  const today = dayIn(seller.time_zone ?? "UTC", now);
  const series = seller.invoice_series ?? seriesDefault;
  const fiscal_year = Number(today.slice(0, 4));
  const { last_sequence: sequence, last_issue_date: issue_date } = oneRow(
    await tx<{ last_sequence: number; last_issue_date: string }[]>`
      insert into invoice_series as last
        (organization_id, issuer_id, environment, type, series, fiscal_year, last_sequence, last_issue_date)
      values
        (${of.organizationId}, ${of.issuerId}, ${of.environment}, ${of.type}, ${series}, ${fiscal_year}, 1, ${today})
      on conflict on constraint invoice_series_key do update
        set last_sequence = last.last_sequence + 1,
            last_issue_date = greatest(last.last_issue_date, excluded.last_issue_date)
      returning last_sequence, last_issue_date::text`,
  );
  const taken = { series, fiscal_year, sequence };
  return { ...taken, number: numberText(of, taken), issue_date };
}
