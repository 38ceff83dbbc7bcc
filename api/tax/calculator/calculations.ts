/**
 * Tax calculation: one stay, or many in one request, by the law as the rules files have it. Numbers
 * keep their digits on the way in (`exact_json.ts`) and are decimal strings on the way out.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { type Guard, type RequestRecord, type Route, route } from "#http/route.ts";
import { taxErrorResponse, taxStatusOf } from "#http/tax_face.ts";
import { invalidRequest, validatorFor } from "#http/validation.ts";
import { placeAt } from "../places/place_at.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import { type CalculationOptions, calculate } from "./calculate.ts";
import { CalculationAnswer } from "./calculation_answer.ts";
import { CalculationProblem, CalculationRequest } from "./calculation_request.ts";
import { parseExactJson } from "./numbers/exact_json.ts";
import { ignoredFields } from "./unknown_fields.ts";

/** Calculations in one batch. */
const batchMax = 100;

const BatchRequest = named(
  "CalculationBatch",
  Type.Object({
    /** Checked one by one, so that one that is wrong does not refuse the others. */
    calculations: Type.Array(Type.Unknown({ description: "what /v1/tax/calculate takes" }), {
      minItems: 1,
      maxItems: batchMax,
      about: "each by itself: one that cannot be calculated refuses no other",
    }),
  }),
);
const BatchItem = Type.Union([
  named("BatchResult", Type.Object({ result: CalculationAnswer }), {
    result: "what the calculation alone would answer",
  }),
  named(
    "BatchError",
    Type.Object({
      error: named(
        "BatchErrorBody",
        Type.Object({
          status: Type.Integer(),
          detail: Type.Unknown({ description: "as the same calculation alone would answer" }),
          completeness: Type.Optional(Type.Unknown({ description: "of what require_complete refuses" })),
        }),
        {
          status: "that the same calculation alone would have",
        },
      ),
    }),
    {
      error: "why it could not be calculated",
    },
  ),
]);
const BatchReply = named(
  "CalculationBatchAnswer",
  Type.Object({ results: Type.Array(BatchItem, { description: "in the order of the request" }) }),
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

export interface CalculationDeps<Caller> {
  ruleset: Ruleset;
  /** Who may calculate. */
  guard: Guard<Caller>;
  /** Keeps the billable request in the log of the caller's organization. */
  record(record: RequestRecord<Caller>): Promise<void>;
  now(): Date;
  /** The place at a point; as far as our own data of places knows, when absent. */
  locate?: CalculationOptions["locate"];
}

export function calculationRoutes<Caller>(deps: CalculationDeps<Caller>): Route[] {
  const { guard, record, ruleset } = deps;
  const requests = validatorFor(CalculationRequest);
  const options = (): CalculationOptions => ({
    today: deps.now().toISOString().slice(0, 10),
    locate: deps.locate ?? ((latitude, longitude) => placeAt(ruleset.places, latitude, longitude)),
  });
  const answer = (request: CalculationRequest): CalculationAnswer => {
    const ignored_fields = ignoredFields(CalculationRequest, request, request.strict);
    const answered = refusing(() => calculate(request, ruleset, options()));
    return ignored_fields.length > 0 ? { ...answered, ignored_fields } : answered;
  };
  const answerOrError = async (request: unknown): Promise<Static<typeof BatchItem>> => {
    try {
      return { result: answer(requests.parse(request)) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const answered = (await taxErrorResponse(error).json()) as { detail: unknown };
      return { error: { status: taxStatusOf(error), ...answered } };
    }
  };
  return [
    route({
      method: "POST",
      path: "/v1/tax/calculate",
      summary: "Calculate the taxes of a stay",
      guard,
      body: CalculationRequest,
      bodyOptions: { parse: parseExactJson },
      reply: { status: 200, body: CalculationAnswer },
      errors: ["bad_request"],
      examples: {
        two_adults_in_rome: { body: romanStay },
        a_family_in_barcelona: {
          body: {
            jurisdiction_code: "ES-CT-BCN",
            stay_date: "2026-07-10",
            nights: 5,
            nightly_rate: "180.00",
            currency: "EUR",
            number_of_guests: 4,
            guest_ages: [41, 39, 12, 9],
            property_type: "hotel",
            star_rating: 4,
          },
        },
        at_a_point: {
          body: {
            latitude: 35.6895,
            longitude: 139.6917,
            stay_date: "2026-10-01",
            nights: 2,
            nightly_rate: 24000,
            currency: "JPY",
            number_of_guests: 2,
          },
        },
        as_known_before: { body: { ...romanStay, as_known_at: "2025-12-01" } },
        unknown_place: {
          body: { ...romanStay, jurisdiction_code: "XX" },
          status: 400,
          answer: { detail: "unknown jurisdiction: XX" },
        },
        no_place: {
          body: { ...romanStay, jurisdiction_code: undefined },
          status: 400,
          answer: { detail: "missing coordinates: give jurisdiction_code, or latitude and longitude" },
        },
        slip_of_the_hand: {
          body: { ...romanStay, guest_age: [8] },
          status: 422,
          answer: {
            detail: [
              { type: "extra_forbidden", loc: ["body", "guest_age"], msg: "Unknown field: did you mean guest_ages?" },
            ],
          },
        },
        no_nights: {
          body: { ...romanStay, nights: 0 },
          status: 422,
          answer: {
            detail: [
              {
                type: "greater_than_equal",
                loc: ["body", "nights"],
                msg: "Expected integer to be greater or equal to 1",
              },
            ],
          },
        },
      },
      record,
      handle: async ({ body }) => answer(body),
    }),
    route({
      method: "POST",
      path: "/v1/tax/calculate/batch",
      summary: "Calculate the taxes of many stays; one that fails lets the others be",
      guard,
      body: BatchRequest,
      bodyOptions: { parse: parseExactJson },
      reply: { status: 200, body: BatchReply },
      examples: {
        one_good_one_unknown: {
          body: { calculations: [romanStay, { ...romanStay, jurisdiction_code: "XX" }] },
        },
      },
      record,
      handle: async ({ body }) => ({ results: await Promise.all(body.calculations.map(answerOrError)) }),
    }),
  ];
}

/**
 * Runs a calculation and refuses as this service does: 422 with the field at fault, or 400 with a
 * sentence. `under` is where the calculation stands in the body, such as `calculation`.
 * @throws ApiError
 */
export function refusing<T>(run: () => T, under = ""): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof CalculationProblem)) throw error;
    const { message: detail, beside } = error;
    if (error.kind !== "invalid") throw new ApiError("bad_request", { detail, beside, cause: error });
    const path = [under, error.field ?? ""].filter((part) => part !== "").join(".");
    throw invalidRequest("body", path, error.message);
  }
}
