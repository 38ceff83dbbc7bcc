/** Invoices and credit notes that were issued: `/v1/invoices`. */

import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import type { Sql } from "#store/sql.ts";
import { requireDates } from "../bookings/bookings.ts";
import {
  findInvoice,
  InvoiceReply,
  type InvoiceRow,
  InvoiceSummary,
  invoiceReply,
  invoiceSummary,
  invoiceSummaryColumns,
  invoiceTypes,
  issuedStates,
  notReady,
  ublReply,
} from "./invoice_record.ts";
import { withoutBuyer } from "./not_ready_example.ts";

const path = "/v1/invoices";
const ofInvoice = { invoice_id: { route: "POST /v1/bookings/{booking_id}/invoice", field: "id" } };

const day = (description: string) => Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description }));

const InvoicePage = named(
  "InvoicePage",
  Type.Object({
    items: Type.Array(InvoiceSummary),
    next_cursor: Type.Unsafe<number | null>({ type: ["integer", "null"], description: "null on the last page" }),
  }),
  {
    items: "the latest first",
    next_cursor: "`cursor` of the next page",
  },
);

export function invoiceRoutes({ sql, guard }: { sql: Sql; guard: Guard<BillableCaller> }): Route[] {
  return [
    route({
      method: "GET",
      path,
      summary: "List invoices and credit notes, the latest first",
      guard,
      query: {
        booking_id: Type.Optional(Type.String({ format: "uuid", about: "invoices of one booking" })),
        issuer_id: Type.Optional(Type.String({ format: "uuid", about: "invoices of one issuer" })),
        type: Type.Optional({ ...oneOf(invoiceTypes), about: "invoices, or credit notes" }),
        state: Type.Optional({ ...oneOf(issuedStates), about: "those in this state" }),
        number: Type.Optional(Type.String({ maxLength: 60, about: "the whole number, as it stands on the invoice" })),
        issued_from: day("a date as YYYY-MM-DD: the earliest issue_date"),
        issued_to: day("a date as YYYY-MM-DD: the latest issue_date"),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "default 50" })),
        cursor: Type.Optional(
          Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: "next_cursor of the page before" }),
        ),
      },
      reply: { status: 200, body: InvoicePage },
      examples: { credit_notes: { query: { type: "credit_note", limit: 10 } } },
      handle: async ({ principal, query }) => {
        const { booking_id: booking, issuer_id: issuer, type, state, number, cursor, limit = 50 } = query;
        const { issued_from: from, issued_to: to } = query;
        requireDates({ issued_from: from, issued_to: to });
        const rows = await sql<Omit<InvoiceRow, "document">[]>`
          select ${invoiceSummaryColumns(sql)} from invoices
          where organization_id = ${principal.organizationId} and environment = ${principal.environment}
            ${booking === undefined ? sql`` : sql`and booking_id = ${booking}`}
            ${issuer === undefined ? sql`` : sql`and issuer_id = ${issuer}`}
            ${type === undefined ? sql`` : sql`and type = ${type}`}
            ${state === undefined ? sql`` : sql`and state = ${state}`}
            ${number === undefined ? sql`` : sql`and number = ${number}`}
            ${from === undefined ? sql`` : sql`and issue_date >= ${from}`}
            ${to === undefined ? sql`` : sql`and issue_date <= ${to}`}
            ${cursor === undefined ? sql`` : sql`and position < ${cursor}`}
          order by position desc limit ${limit + 1}`;
        const page = rows.slice(0, limit);
        const last = rows.length > limit ? page.at(-1) : undefined;
        return { items: page.map(invoiceSummary), next_cursor: last ? Number(last.position) : null };
      },
    }),
    route({
      method: "GET",
      path: `${path}/{invoice_id}`,
      summary: "Get an invoice or credit note with its document",
      guard,
      reply: { status: 200, body: InvoiceReply },
      paramsFrom: ofInvoice,
      examples: { one: {} },
      handle: async ({ principal, params }) => invoiceReply(await findInvoice(sql, principal, params.invoice_id)),
    }),
    route({
      method: "GET",
      path: `${path}/{invoice_id}/ubl`,
      summary: "An invoice or credit note in UBL 2.1; 422 with the rules it breaks when it is not ready to be sent",
      guard,
      reply: { status: 200, body: named("UblInvoice", Type.String()), mediaType: "application/xml" },
      errors: ["unprocessable"],
      paramsFrom: ofInvoice,
      examples: { of_a_guest_at_the_desk: { status: 422, answer: notReady(withoutBuyer) } },
      handle: async ({ principal, params }) =>
        ublReply((await findInvoice(sql, principal, params.invoice_id)).document),
    }),
  ];
}
