/** Invoices and credit notes as they are kept and answered, and reading them. */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import type { AnySql } from "#store/sql.ts";
import type { BookingOwner } from "../bookings/booking_record.ts";
import { InvoiceDocument } from "./invoice_document.ts";
import { Violation, violationsIn } from "./rules/check_document.ts";
import { ublFor } from "./ubl.ts";

export const invoiceTypes = ["invoice", "credit_note"] as const;
/** A draft is no row: it is what a booking without a live invoice projects. */
export const issuedStates = ["issued", "credited"] as const;

const summaryFields = {
  id: Type.String({ format: "uuid" }),
  booking_id: Type.String({ format: "uuid" }),
  issuer_id: nullableText,
  environment: oneOf(["live", "test"]),
  type: oneOf(invoiceTypes),
  state: oneOf(issuedStates),
  number: Type.String(),
  series: Type.String(),
  fiscal_year: Type.Integer(),
  sequence: Type.Integer({ description: "without a gap from 1 in its issuer, type, series and fiscal year" }),
  issue_date: Type.String({ description: "YYYY-MM-DD in the issuer's time zone" }),
  currency: Type.String(),
  total_with_vat: Type.String(),
  credited_invoice_id: Type.Unsafe<string | null>({
    type: ["string", "null"],
    description: "the invoice that a credit note takes back",
  }),
  created_at: Timestamp,
  credited_at: OptionalTimestamp,
};
export const InvoiceSummary = named("InvoiceSummary", Type.Object(summaryFields), {
  environment: "`live`, or `test` by test keys",
  type: "an invoice, or a credit note that takes one back",
  state: "`credited` once a credit note took it back",
  number: "as it stands on the invoice",
  series: "what the number begins with",
  fiscal_year: "the year that the numbers count in",
  total_with_vat: "what it comes to",
  credited_at: "when a credit note took it back; null before",
});
export type InvoiceSummary = Static<typeof InvoiceSummary>;

export const Validation = named(
  "InvoiceValidation",
  Type.Object({
    is_valid: Type.Boolean({ description: "whether it can be sent as an e-invoice" }),
    violations: Type.Array(Violation),
  }),
  {
    violations: "the rules that it breaks",
  },
);

export const InvoiceReply = named(
  "Invoice",
  Type.Object({ ...InvoiceSummary.properties, document: InvoiceDocument, validation: Validation }),
  {
    document: "the whole content, as it was frozen",
    validation: "whether it can be sent as an e-invoice",
  },
);
export type InvoiceReply = Static<typeof InvoiceReply>;

export type InvoiceRow = InvoiceSummary & { position: string; document: InvoiceDocument };

export const invoiceSummaryColumns = (sql: AnySql) =>
  sql`id, position, booking_id, issuer_id, environment, type, state, number, series, fiscal_year, sequence,
      issue_date::text, currency, total_with_vat, credited_invoice_id, created_at, credited_at`;
export const invoiceColumns = (sql: AnySql) => sql`${invoiceSummaryColumns(sql)}, document`;

export function invoiceSummary({ position: _, ...row }: InvoiceSummary & { position: string }): InvoiceSummary {
  return row;
}

export function invoiceReply({ document, ...row }: InvoiceRow): InvoiceReply {
  return { ...invoiceSummary(row), document, validation: validationOf(violationsIn(document)) };
}

export const validationOf = (violations: Violation[]) => ({ is_valid: violations.length === 0, violations });

/** @throws ApiError not_found for what does not exist or is another's */
export async function findInvoice(sql: AnySql, principal: BookingOwner, id: string): Promise<InvoiceRow> {
  const [row] = await sql<InvoiceRow[]>`
    select ${invoiceColumns(sql)} from invoices
    where id = ${id} and organization_id = ${principal.organizationId} and environment = ${principal.environment}`;
  if (!row) throw new ApiError("not_found");
  return row;
}

/** The live invoice of a booking that was found to be the caller's. */
export async function liveInvoiceOf(sql: AnySql, bookingId: string): Promise<InvoiceRow | undefined> {
  const [row] = await sql<InvoiceRow[]>`
    select ${invoiceColumns(sql)} from invoices
    where booking_id = ${bookingId} and type = 'invoice' and state = 'issued'`;
  return row;
}

/** What is answered in place of UBL: the sentence that every refusal has, and the rules behind it. */
export function notReady(violations: readonly Violation[]) {
  const rules = [...new Set(violations.map(({ rule }) => rule))];
  const shown = rules.length > 8 ? `${rules.slice(0, 8).join(", ")} and ${rules.length - 8} more` : rules.join(", ");
  return { detail: `The e-invoice is not ready to be sent: ${shown}`, violations };
}

/** A document as UBL, or 422 with what stands in the way of sending it. */
export function ublReply(document: InvoiceDocument): Response {
  const violations = violationsIn(document);
  if (violations.length > 0) return Response.json(notReady(violations), { status: 422 });
  const fileName = `${(document.number ?? "").replaceAll("/", "_")}.xml`;
  return new Response(ublFor(document), {
    headers: { "content-type": "application/xml", "content-disposition": `attachment; filename="${fileName}"` },
  });
}
