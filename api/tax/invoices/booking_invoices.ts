/** The invoice of a booking: its details, its draft, issuing it, taking it back, and its UBL. */

import { Type } from "@sinclair/typebox";
import type { Billable } from "#accounts/request_log.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import { json, type Sql } from "#store/sql.ts";
import { changing } from "../bookings/booking_change.ts";
import { BookingReply, type BookingRow, bookingReply, findBooking, lockBooking } from "../bookings/booking_record.ts";
import { createFrozenRules } from "../bookings/frozen_rules.ts";
import {
  changedInvoiceDetails,
  checkInvoiceDetails,
  type InvoiceDetails,
  InvoiceDetailsChange,
  isOverpaid,
  requireDocumentText,
} from "./invoice_details.ts";
import { InvoiceDocument } from "./invoice_document.ts";
import {
  InvoiceReply,
  invoiceReply,
  liveInvoiceOf,
  notReady,
  ublReply,
  Validation,
  validationOf,
} from "./invoice_record.ts";
import { creditInvoice, draftOf, issueInvoice, requireInvoiceable, sellerOf } from "./invoicing.ts";
import { refuseWhenFrozen } from "./live_invoice.ts";
import { notIssued } from "./not_ready_example.ts";
import { violationsBeforeIssue, violationsIn } from "./rules/check_document.ts";

const path = "/v1/bookings/{booking_id}";
const ofBooking = { booking_id: { route: "POST /v1/bookings", field: "id" } };

const DocumentReply = named(
  "InvoicePreview",
  Type.Object({
    booking_id: Type.String({ format: "uuid" }),
    invoice_id: nullableText,
    state: oneOf(["draft", "issued"]),
    ...InvoiceDocument.properties,
    validation: Validation,
  }),
  {
    invoice_id: "the issued invoice; null of a draft",
    state: "`draft` until the invoice is issued",
    validation: "whether it can be sent as an e-invoice",
  },
);

const IssueRequest = named(
  "InvoiceIssue",
  Type.Object({
    require_valid: Type.Optional(
      Type.Boolean({ description: "true refuses with 422 what could not be sent as an e-invoice; default false" }),
    ),
  }),
);

const CreditRequest = named(
  "InvoiceCredit",
  Type.Object({
    reason: Type.Optional(
      Type.Union([Type.String({ minLength: 1, maxLength: 1000, pattern: "\\S" }), Type.Null()], {
        description: "text of at most 1000 characters",
      }),
    ),
  }),
  {
    reason: "why the invoice is taken back",
  },
);

export interface InvoiceDeps extends Billable {
  sql: Sql;
  now(): Date;
}

export function bookingInvoiceRoutes({ sql, now, guard, record }: InvoiceDeps): Route[] {
  const frozenRules = createFrozenRules();
  const draft = async (booking: BookingRow) =>
    draftOf(booking, await sellerOf(sql, booking), await frozenRules.read(sql, booking.ruleset_hash));
  return [
    route({
      method: "PATCH",
      path: `${path}/invoice-details`,
      summary: "Set what the booking's invoice says of its buyer and payment, or clear it with null",
      guard,
      record,
      body: InvoiceDetailsChange,
      strictBody: true,
      reply: { status: 200, body: BookingReply },
      errors: ["conflict"],
      paramsFrom: ofBooking,
      examples: {
        a_company: {
          body: {
            buyer: {
              name: "Example Travel GmbH",
              vat_id: "DE123456789",
              address_line1: "Hauptstrasse 5",
              city: "Berlin",
              postal_code: "10115",
              country: "DE",
              electronic_address: "DE123456789",
              electronic_address_scheme: "9930",
            },
            buyer_reference: "Cost centre 4711",
            payment_due_date: "2026-12-31",
          },
        },
      },
      handle: async ({ principal, params, body }) => {
        checkInvoiceDetails(body);
        return changing(sql, async (tx) => {
          const booking = await lockBooking(tx, principal, params.booking_id);
          await refuseWhenFrozen(tx, booking.id);
          requireInvoiceable(booking);
          if (isOverpaid(body.paid_amount, booking)) {
            const expected = `Expected at most ${booking.total_with_tax} ${booking.currency}, what the booking comes to`;
            throw invalidRequest("body", "paid_amount", expected, "less_than_equal");
          }
          const details = changedInvoiceDetails((booking.invoice_details ?? {}) as InvoiceDetails, body);
          const at = now();
          await tx`
            update bookings set invoice_details = ${json(tx, details)}, updated_at = ${at} where id = ${booking.id}`;
          return bookingReply({ ...booking, invoice_details: details, updated_at: at });
        });
      },
    }),
    route({
      method: "GET",
      path: `${path}/document`,
      summary: "The booking as an invoice: the live one, or the draft that would be issued, with what is wrong with it",
      guard,
      reply: { status: 200, body: DocumentReply },
      paramsFrom: ofBooking,
      examples: { of_a_booking: {} },
      handle: async ({ principal, params }) => {
        const booking = await findBooking(sql, principal, params.booking_id);
        const live = await liveInvoiceOf(sql, booking.id);
        const document = live?.document ?? (await draft(booking));
        return {
          booking_id: booking.id,
          invoice_id: live?.id ?? null,
          state: live ? ("issued" as const) : ("draft" as const),
          ...document,
          validation: validationOf(live ? violationsIn(document) : violationsBeforeIssue(document)),
        };
      },
    }),
    route({
      method: "POST",
      path: `${path}/invoice`,
      summary: "Issue the booking's invoice: it takes a number and freezes the booking",
      guard,
      record,
      body: IssueRequest,
      strictBody: true,
      reply: { status: 201, body: InvoiceReply },
      errors: ["conflict"],
      paramsFrom: ofBooking,
      examples: { as_it_stands: {} },
      handle: async ({ principal, params, body }) => {
        const issued = await changing(sql, async (tx) => {
          const booking = await lockBooking(tx, principal, params.booking_id);
          const rules = await frozenRules.read(tx, booking.ruleset_hash);
          const requireValid = body.require_valid ?? false;
          return issueInvoice(tx, { booking, rules, by: principal, at: now(), requireValid });
        });
        return "violations" in issued
          ? Response.json(notReady(issued.violations), { status: 422 })
          : invoiceReply(issued);
      },
    }),
    route({
      method: "GET",
      path: `${path}/invoice`,
      summary: "The booking's live invoice",
      guard,
      reply: { status: 200, body: InvoiceReply },
      paramsFrom: ofBooking,
      examples: { none_issued: { status: 404, answer: { detail: "No invoice is issued for this booking" } } },
      handle: async ({ principal, params }) => {
        const booking = await findBooking(sql, principal, params.booking_id);
        const live = await liveInvoiceOf(sql, booking.id);
        if (!live) throw new ApiError("not_found", { detail: "No invoice is issued for this booking" });
        return invoiceReply(live);
      },
    }),
    route({
      method: "POST",
      path: `${path}/invoice/credit`,
      summary: "Take the live invoice back with a credit note; the booking can be changed and invoiced again",
      guard,
      record,
      body: CreditRequest,
      strictBody: true,
      reply: { status: 201, body: InvoiceReply },
      errors: ["conflict"],
      paramsFrom: ofBooking,
      examples: {
        nothing_issued: {
          body: { reason: "Wrong buyer" },
          status: 409,
          answer: { detail: "Cannot credit an invoice: none is issued for this booking" },
        },
      },
      handle: ({ principal, params, body }) => {
        requireDocumentText(body, CreditRequest.properties);
        return changing(sql, async (tx) => {
          const booking = await lockBooking(tx, principal, params.booking_id);
          return invoiceReply(
            await creditInvoice(tx, { booking, by: principal, at: now(), reason: body.reason ?? null }),
          );
        });
      },
    }),
    route({
      method: "GET",
      path: `${path}/invoice/ubl`,
      summary: "The booking's invoice in UBL 2.1; 422 with the rules it breaks when it is not ready to be sent",
      guard,
      reply: { status: 200, body: named("UblInvoice", Type.String()), mediaType: "application/xml" },
      errors: ["unprocessable"],
      paramsFrom: ofBooking,
      examples: { not_issued_yet: { status: 422, answer: notReady(notIssued) } },
      handle: async ({ principal, params }) => {
        const booking = await findBooking(sql, principal, params.booking_id);
        const live = await liveInvoiceOf(sql, booking.id);
        return ublReply(live?.document ?? (await draft(booking)));
      },
    }),
  ];
}
