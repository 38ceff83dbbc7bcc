/**
 * `POST /v1/bookings`: calculates a stay and keeps it. With a key a request takes effect once: the
 * unique index on the key makes a racing twin wait, and whoever comes second is answered the booking.
 */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { type AnySql, json } from "#store/sql.ts";
import { calculateWith, placeRulesFor } from "../calculator/calculate.ts";
import { CalculationRequest } from "../calculator/calculation_request.ts";
import { refusing } from "../calculator/calculations.ts";
import { parseExactJson } from "../calculator/numbers/exact_json.ts";
import { IgnoredFields, ignoredFields } from "../calculator/unknown_fields.ts";
import { requireUsableIssuer, vatStatusOf } from "../invoices/issuers.ts";
import { changing, figuresOf, type NewChange, writeChange } from "./booking_change.ts";
import type { BookingDeps } from "./booking_deps.ts";
import { BookingReply, type BookingRow, bookingColumns, bookingReply } from "./booking_record.ts";
import { IdempotencyKey, keyReused, replayed } from "./idempotency.ts";
import { fingerprintOf, meaningOf } from "./request_fingerprint.ts";
import { taxDelta } from "./tax_delta.ts";
import { type TaxSettings, taxSettingsOf, withSettings } from "./tax_settings.ts";

const NewBooking = named(
  "NewBooking",
  Type.Object({
    idempotency_key: Type.Optional(IdempotencyKey),
    external_reference: Type.Optional(
      Type.Union([Type.String({ maxLength: 200 }), Type.Null()], { description: "text of at most 200 characters" }),
    ),
    issuer_id: Type.Optional(
      Type.Union([Type.String({ format: "uuid" }), Type.Null()], { description: "the id of an issuer" }),
    ),
    calculation: CalculationRequest,
  }),
  {
    idempotency_key: "a repeated request with the same key makes no second booking",
    external_reference: "the number in your own system",
    issuer_id: "who writes the invoice; the organization unless given",
    calculation: "the stay, as `/v1/tax/calculate` takes it",
  },
);
export type NewBooking = Static<typeof NewBooking>;

const CreatedBooking = named(
  "CreatedBooking",
  Type.Object({ ...BookingReply.properties, ignored_fields: IgnoredFields }),
);

const romanStay = {
  jurisdiction_code: "IT-RM-ROM",
  stay_date: "2026-05-10",
  nights: 3,
  nightly_rate: "150.00",
  currency: "EUR",
  number_of_guests: 2,
  property_type: "hotel",
  star_rating: 4,
};

export function bookingCreationRoute(deps: BookingDeps): Route {
  return route({
    method: "POST",
    path: "/v1/bookings",
    summary: "Book a stay; 200 with the booking that is there when the key has been used for the same",
    guard: deps.guard,
    record: deps.record,
    body: NewBooking,
    bodyOptions: { parse: parseExactJson },
    reply: { status: 201, body: CreatedBooking },
    otherReplies: { 200: "The booking that the key made before, as it is now" },
    errors: ["bad_request", "not_found", "conflict"],
    examples: {
      three_nights_in_rome: { body: { external_reference: "PMS-1042", calculation: romanStay } },
      safe_to_send_again: { body: { idempotency_key: "pms-1042-1", calculation: romanStay } },
      departure_that_does_not_fit: {
        body: { calculation: { ...romanStay, checkout_date: "2026-05-12" } },
        status: 422,
        answer: {
          detail: [
            {
              type: "value_error",
              loc: ["body", "calculation", "checkout_date"],
              msg: "Expected stay_date plus nights, 2026-05-13",
            },
          ],
        },
      },
      unknown_place: {
        body: { calculation: { ...romanStay, jurisdiction_code: "XX" } },
        status: 400,
        answer: { detail: "unknown jurisdiction: XX" },
      },
    },
    handle: async ({ principal, body }) => {
      const { booking, isReplay, ignored_fields } = await book(deps, principal, body);
      const reply = { ...bookingReply(booking), ...(ignored_fields.length > 0 && { ignored_fields }) };
      return isReplay ? replayed(reply) : reply;
    },
  });
}

type Key = NonNullable<NewChange["key"]>;

/** @throws ApiError for what cannot be booked */
export async function book(
  deps: Pick<BookingDeps, "sql" | "ruleset" | "locate" | "frozenRules" | "now">,
  principal: BillableCaller,
  body: NewBooking,
): Promise<Booked> {
  const { organizationId } = principal;
  const [settings, sellerStatus] = await Promise.all([
    taxSettingsOf(deps.sql, organizationId),
    vatStatusOf(deps.sql, organizationId, body.issuer_id ?? null),
  ]);
  const ignored_fields = ignoredFields(NewBooking, body, body.calculation.strict ?? settings.strict);
  const calculation = Value.Clean(CalculationRequest, body.calculation) as CalculationRequest;
  const { external_reference = null, issuer_id = null } = body;
  const meaning = refusing(() => meaningOf(calculation), "calculation");
  const fingerprint = fingerprintOf({ external_reference, issuer_id, calculation: meaning });
  const key = body.idempotency_key ? { text: body.idempotency_key, fingerprint } : undefined;
  try {
    const sold = { ...(sellerStatus && { seller_vat_status: sellerStatus }), ...calculation };
    const asked = { calculation: sold, external_reference, issuer_id, key, settings };
    return { ...(await bookAnew(deps, principal, asked)), ignored_fields };
  } catch (error) {
    // What was booked stands, also where it could not be booked any more.
    const earlier = key && error instanceof ApiError && (await bookedWith(deps.sql, principal, key));
    if (earlier) return { booking: earlier, isReplay: true, ignored_fields };
    throw error;
  }
}

interface Booked {
  booking: Omit<BookingRow, "position">;
  isReplay: boolean;
  /** Of the request, by their path. */
  ignored_fields: string[];
}

async function bookAnew(
  { sql, ruleset, locate, frozenRules, now }: Pick<BookingDeps, "sql" | "ruleset" | "locate" | "frozenRules" | "now">,
  principal: BillableCaller,
  {
    calculation,
    external_reference,
    issuer_id,
    key,
    settings,
  }: Pick<BookingRow, "external_reference" | "issuer_id"> & {
    calculation: CalculationRequest;
    key: Key | undefined;
    settings: TaxSettings;
  },
): Promise<Omit<Booked, "ignored_fields">> {
  const at = now();
  const today = at.toISOString().slice(0, 10);
  const place = refusing(() => placeRulesFor(calculation, ruleset, { locate }), "calculation");
  const answer = refusing(() => calculateWith(place, withSettings(calculation, settings), today), "calculation");
  await frozenRules.keep(sql, place);
  const booking: Booked["booking"] = {
    id: crypto.randomUUID(),
    organization_id: principal.organizationId,
    environment: principal.environment,
    state: "confirmed",
    external_reference,
    idempotency_key: key?.text ?? null,
    request_fingerprint: key?.fingerprint ?? null,
    ...figuresOf(calculation, answer),
    ruleset_hash: place.hash,
    calculated_on: today,
    jurisdiction_code: place.place.code,
    currency: answer.currency,
    issuer_id,
    invoice_details: null,
    created_at: at,
    updated_at: at,
  };
  const delta = taxDelta(undefined, answer);
  const change: NewChange = { kind: "created", request: calculation, delta, by: principal, at };
  return changing(sql, async (tx) => {
    if (issuer_id) await requireUsableIssuer(tx, principal.organizationId, issuer_id);
    if (await insertBooking(tx, booking, change)) return { booking, isReplay: false };
    const twin = key && (await bookedWith(tx, principal, key));
    if (!twin) throw new Error("Expected the booking that holds the key");
    return { booking: twin, isReplay: true };
  });
}

/**
 * The booking that was made with the key.
 * @throws ApiError conflict when it was made by another request
 */
async function bookedWith(
  sql: AnySql,
  { organizationId, environment }: BillableCaller,
  key: Key,
): Promise<BookingRow | undefined> {
  const [row] = await sql<BookingRow[]>`
    select ${bookingColumns(sql)} from bookings
    where organization_id = ${organizationId} and environment = ${environment} and idempotency_key = ${key.text}`;
  if (row && row.request_fingerprint !== key.fingerprint) throw keyReused("idempotency_key");
  return row;
}

/** Answers false, and writes nothing, when the booking's key is taken; waits for whoever is taking it. */
function insertBooking(sql: AnySql, row: Booked["booking"], change: NewChange): Promise<boolean> {
  return writeChange(
    sql,
    sql`insert into bookings
          (id, organization_id, environment, state, external_reference, idempotency_key, request_fingerprint,
           request, answer, ruleset_hash, calculated_on, jurisdiction_code, currency, stay_date, checkout_date,
           total_tax, total_with_tax, issuer_id, created_at, updated_at)
        values
          (${row.id}, ${row.organization_id}, ${row.environment}, ${row.state}, ${row.external_reference},
           ${row.idempotency_key}, ${row.request_fingerprint}, ${json(sql, row.request)}, ${json(sql, row.answer)},
           ${row.ruleset_hash}, ${row.calculated_on}, ${row.jurisdiction_code}, ${row.currency}, ${row.stay_date},
           ${row.checkout_date}, ${row.total_tax}, ${row.total_with_tax}, ${row.issuer_id}, ${row.created_at},
           ${row.updated_at})
        on conflict on constraint bookings_idempotency_key_key do nothing
        returning id`,
    change,
  );
}
