/**
 * Issuing and crediting. An invoice is a draft as long as the booking has no live one; issued, it
 * has a number and freezes the booking; credited, it is over and the booking a draft again.
 */

import type { LegalProfile } from "#accounts/legal_profile.ts";
import { ApiError } from "#contracts/errors.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { type AnySql, json, oneRow } from "#store/sql.ts";
import type { BookingRow } from "../bookings/booking_record.ts";
import type { PlaceRules } from "../rules/ruleset.ts";
import { creditNoteFor, projectInvoice } from "./document_projection.ts";
import { type InvoiceDetails, isOverpaid } from "./invoice_details.ts";
import type { InvoiceDocument } from "./invoice_document.ts";
import { takeNumber } from "./invoice_number.ts";
import { type InvoiceRow, invoiceColumns, liveInvoiceOf } from "./invoice_record.ts";
import { refuseWhenFrozen } from "./live_invoice.ts";
import { type Violation, violationsBeforeIssue } from "./rules/check_document.ts";

/** Who sells a booking: its issuer, or the organization itself. */
export async function sellerOf(
  sql: AnySql,
  { organization_id, issuer_id }: Pick<BookingRow, "organization_id" | "issuer_id">,
): Promise<LegalProfile> {
  const rows =
    issuer_id === null
      ? sql<{ legal_profile: LegalProfile }[]>`select legal_profile from organization where id = ${organization_id}`
      : sql<{ legal_profile: LegalProfile }[]>`
          select legal_profile from issuers where id = ${issuer_id} and organization_id = ${organization_id}`;
  return oneRow(await rows).legal_profile;
}

/** The invoice that a booking would be issued as it stands. */
export function draftOf(booking: BookingRow, seller: LegalProfile, { rules }: PlaceRules): InvoiceDocument {
  const { answer, request } = booking;
  return projectInvoice({ answer, request, rules }, seller, (booking.invoice_details ?? {}) as InvoiceDetails);
}

/** @throws ApiError conflict when the booking has ended: nothing of it is left to invoice */
export function requireInvoiceable({ state }: Pick<BookingRow, "state">): void {
  if (state === "refunded" || state === "voided") {
    throw new ApiError("conflict", {
      detail: `Cannot invoice the booking: it is ${state}, expected confirmed, adjusted or partially_refunded`,
    });
  }
}

/** A booking that became cheaper may have been paid over: what was paid is to be said anew before it is invoiced. */
function requireNotOverpaid(booking: BookingRow): void {
  const paid = (booking.invoice_details as InvoiceDetails | null)?.paid_amount;
  if (!isOverpaid(paid, booking)) return;
  throw new ApiError("conflict", {
    detail: `Cannot invoice the booking: paid_amount is ${paid}, and it comes to ${booking.total_with_tax} ${booking.currency}: change paid_amount of the invoice details`,
  });
}

/**
 * Issues the invoice of a booking that the transaction holds. With `requireValid` one that could not
 * be sent as an e-invoice is not issued, and takes no number.
 * @throws ApiError conflict when there is a live one, nothing to invoice, or more paid than is left
 */
export async function issueInvoice(
  tx: AnySql,
  {
    booking,
    rules,
    by,
    at,
    requireValid,
  }: { booking: BookingRow; rules: PlaceRules; by: BillableCaller; at: Date; requireValid: boolean },
): Promise<InvoiceRow | { violations: Violation[] }> {
  await refuseWhenFrozen(tx, booking.id);
  requireInvoiceable(booking);
  requireNotOverpaid(booking);
  const seller = await sellerOf(tx, booking);
  const document = draftOf(booking, seller, rules);
  const violations = requireValid ? violationsBeforeIssue(document) : [];
  if (violations.length > 0) return { violations };
  return insert(tx, { booking, by, at, seller, document, credits: null });
}

/**
 * Takes the live invoice of a booking back with a credit note of its own number.
 * @throws ApiError conflict when there is none
 */
export async function creditInvoice(
  tx: AnySql,
  { booking, by, at, reason }: { booking: BookingRow; by: BillableCaller; at: Date; reason: string | null },
): Promise<InvoiceRow> {
  const live = await liveInvoiceOf(tx, booking.id);
  if (!live) {
    throw new ApiError("conflict", { detail: "Cannot credit an invoice: none is issued for this booking" });
  }
  // The number is the seller's of today; what it says is what was issued.
  const seller = await sellerOf(tx, booking);
  const creditNote = creditNoteFor(live.document);
  const document = reason === null ? creditNote : { ...creditNote, note: reason };
  await tx`update invoices set state = 'credited', credited_at = ${at} where id = ${live.id}`;
  return insert(tx, { booking, by, at, seller, document, credits: live.id });
}

interface NewInvoice {
  booking: BookingRow;
  by: BillableCaller;
  at: Date;
  seller: LegalProfile;
  document: InvoiceDocument;
  /** The invoice that a credit note takes back. */
  credits: string | null;
}

async function insert(tx: AnySql, { booking, by, at, seller, document, credits }: NewInvoice): Promise<InvoiceRow> {
  const { organization_id: organizationId, issuer_id: issuerId, environment } = booking;
  const { type } = document;
  const taken = await takeNumber(tx, { organizationId, issuerId, environment, type }, seller, at);
  const issued: InvoiceDocument = { ...document, number: taken.number, issue_date: taken.issue_date };
  return oneRow(
    await tx<InvoiceRow[]>`
      insert into invoices
        (organization_id, environment, booking_id, issuer_id, type, state, series, fiscal_year, sequence, number,
         issue_date, currency, total_with_vat, document, credited_invoice_id, user_id, api_key_id, created_at)
      values
        (${organizationId}, ${environment}, ${booking.id}, ${issuerId}, ${type}, 'issued', ${taken.series},
         ${taken.fiscal_year}, ${taken.sequence}, ${taken.number}, ${taken.issue_date}, ${issued.currency},
         ${issued.totals.with_vat}, ${json(tx, issued)}, ${credits}, ${by.userId}, ${by.apiKeyId}, ${at})
      returning ${invoiceColumns(tx)}`,
  );
}
