/**
 * `POST /v1/bookings/{id}/adjust`: the stay changes and its taxes with it. The whole stay is
 * calculated anew by the rules that it was booked under, so that caps, night limits and bands hold
 * for all of it; what is answered is the difference.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { invalidRequest } from "#http/validation.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { calculateWith, placeRulesFor } from "../calculator/calculate.ts";
import { CalculationRequest } from "../calculator/calculation_request.ts";
import { refusing } from "../calculator/calculations.ts";
import { parseExactJson } from "../calculator/numbers/exact_json.ts";
import { refuseWhenFrozen } from "../invoices/live_invoice.ts";
import type { PlaceRules } from "../rules/ruleset.ts";
import { changeBooking, changing, type NewChange } from "./booking_change.ts";
import type { BookingDeps } from "./booking_deps.ts";
import { requireOpen, stateAfterAdjusting } from "./booking_lifecycle.ts";
import { type BookingRow, bookingReply, findBooking, fromCreation, lockBooking } from "./booking_record.ts";
import { ChangedBooking, Reason } from "./changed_booking.ts";
import { adjustedRequest, type StayChanges } from "./stay_changes.ts";
import { taxDelta } from "./tax_delta.ts";
import { taxSettingsOf, withSettings } from "./tax_settings.ts";

const Changes = Type.Partial(CalculationRequest);
const Adjustment = named(
  "BookingAdjustment",
  Type.Object({
    ...Changes.properties,
    calculation: Type.Optional(
      Type.Composite([Changes], {
        description: "fields of the calculation that change; they may stand beside it as well",
      }),
    ),
    /** frozen: by the rules that it was booked under; today: by today's, which it keeps from then on. */
    law: Type.Optional(oneOf(["frozen", "today"])),
    reason: Type.Optional(Reason),
  }),
  {
    law: "`today`: from now on by the rules of today; else by those of the booking",
    reason: "why, for the record",
  },
);

export function bookingAdjustmentRoute(deps: BookingDeps): Route {
  const { sql, guard, record, now, frozenRules } = deps;
  return route({
    method: "POST",
    path: "/v1/bookings/{booking_id}/adjust",
    summary: "Change a booked stay; by the rules that it was booked under, or by today's",
    guard,
    record,
    body: Adjustment,
    strictBody: true,
    bodyOptions: { parse: parseExactJson },
    reply: { status: 200, body: ChangedBooking },
    errors: ["bad_request", "conflict"],
    paramsFrom: fromCreation,
    examples: {
      one_night_more: { body: { nights: 4, reason: "Stays on" } },
      another_price_for_three: { body: { calculation: { nightly_rate: "140.00", number_of_guests: 3 } } },
      by_todays_law: { body: { law: "today", reason: "The city raised its tax" } },
      in_another_currency: {
        body: { currency: "USD" },
        status: 400,
        answer: { detail: "currency mismatch: the booking is in EUR, the change in USD" },
      },
    },
    handle: async ({ principal, params, body }) => {
      const { changes, under } = changesIn(body);
      const today = body.law === "today" ? await todaysRules(deps, principal, params.booking_id) : undefined;
      return changing(sql, async (tx) => {
        const booking = await lockBooking(tx, principal, params.booking_id);
        await refuseWhenFrozen(tx, booking.id);
        requireOpen(booking, "adjust");
        const rules = today ?? (await frozenRules.read(tx, booking.ruleset_hash));
        requireSamePlace(deps, rules, changes, under);
        requireSameCurrency(booking, changes);
        const request = refusing(() => adjustedRequest(booking.request, changes), under);
        const asked = withSettings(request, await taxSettingsOf(tx, principal.organizationId));
        const answer = refusing(() => calculateWith(rules, asked, booking.calculated_on), under);
        const delta = taxDelta(booking.answer, answer);
        const to = { state: stateAfterAdjusting(booking.state), request, answer, rulesetHash: rules.hash };
        const change: NewChange = {
          kind: "adjusted",
          request: body.law === undefined ? changes : { ...changes, law: body.law },
          reason: body.reason,
          delta,
          by: principal,
          at: now(),
        };
        return { ...bookingReply(await changeBooking(tx, booking, to, change)), tax_delta: delta };
      });
    },
  });
}

/** What changes, and where in the body that is said. */
function changesIn({ calculation = {}, reason: _, law, ...beside }: Static<typeof Adjustment>): {
  changes: StayChanges;
  under: string;
} {
  const changes = { ...calculation, ...beside };
  for (const field of Object.keys(beside)) {
    if (field in calculation) throw invalidRequest("body", field, `Expected once, not in calculation as well`);
  }
  if (Object.keys(changes).length === 0 && law !== "today")
    throw invalidRequest("body", "calculation", "Expected fields that change");
  return { changes, under: Object.keys(calculation).length > 0 ? "calculation" : "" };
}

/** Today's rules of the booking's place, kept before anything names them. */
async function todaysRules(
  { sql, ruleset, frozenRules }: BookingDeps,
  principal: BillableCaller,
  id: string,
): Promise<PlaceRules> {
  const { jurisdiction_code } = await findBooking(sql, principal, id);
  const rules = ruleset.rulesIn(jurisdiction_code);
  if (!rules) throw new ApiError("bad_request", { detail: `unknown jurisdiction: ${jurisdiction_code}` });
  await frozenRules.keep(sql, rules);
  return rules;
}

/** Frozen rules are those of one place. @throws ApiError for another one */
function requireSamePlace(deps: BookingDeps, rules: PlaceRules, changes: StayChanges, under: string): void {
  const { jurisdiction_code: code, latitude, longitude } = changes;
  if (code === undefined && latitude === undefined && longitude === undefined) return;
  if (code?.toUpperCase() === rules.place.code) return;
  const asked = refusing(() => placeRulesFor(changes, deps.ruleset, deps), under);
  if (asked.place.code === rules.place.code) return;
  const field = [under, code === undefined ? "latitude" : "jurisdiction_code"].filter((part) => part !== "").join(".");
  const message = `Expected the booking's place, ${rules.place.code}: a stay elsewhere is another booking`;
  throw invalidRequest("body", field, message);
}

function requireSameCurrency(booking: BookingRow, { currency }: StayChanges): void {
  if (currency === undefined || currency === booking.currency) return;
  throw new ApiError("bad_request", {
    detail: `currency mismatch: the booking is in ${booking.currency}, the change in ${currency}`,
  });
}
