/** Address validation: `POST /v1/addresses/validate`, offline and billable. */
import { type Guard, type RequestRecord, type Route, route } from "#http/route.ts";
import { invalidRequest } from "#http/validation.ts";
import { folded } from "../places/jurisdictions.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import { loadAddressFormats } from "./address_formats.ts";
import { AddressAnswer, AddressRequest } from "./address_schema.ts";
import { validateAddress } from "./address_validation.ts";
import { countriesByName } from "./country_names.ts";

const bodyBytesMax = 16 * 1024;

export interface AddressDeps<Caller> {
  ruleset: Ruleset;
  /** Who may ask. */
  guard: Guard<Caller>;
  /** Keeps the billable request in the log of the caller's organization. */
  record(record: RequestRecord<Caller>): Promise<void>;
}

export function addressRoutes<Caller>({ ruleset, guard, record }: AddressDeps<Caller>): Route[] {
  const formats = loadAddressFormats();
  const countries = countriesByName();
  return [
    route({
      method: "POST",
      path: "/v1/addresses/validate",
      summary: "Check and normalise an address, and find the place that taxes a stay there",
      guard,
      body: AddressRequest,
      bodyOptions: { bytesMax: bodyBytesMax },
      reply: { status: 200, body: AddressAnswer },
      record,
      examples: {
        a_hotel_in_rome: {
          body: {
            address: { line1: "Via Vittorio Veneto 125", city: "ROMA", postal_code: "00187", country: "IT" },
          },
        },
        a_point_as_well: {
          body: {
            address: {
              line1: "1 Market Street",
              city: "San Francisco",
              region: "California",
              postal_code: "94105",
              country: "US",
            },
            lat: 37.7937,
            lng: -122.3965,
          },
        },
        wrong_postal_code: {
          body: {
            address: { line1: "1 Main Street", city: "Los Angeles", region: "CA", postal_code: "10001", country: "US" },
          },
        },
        unknown_country: {
          body: { address: { line1: "1 Main Street", city: "Erewhon", country: "XX" } },
          status: 422,
          answer: {
            detail: [
              {
                type: "unknown_country",
                loc: ["body", "address", "country"],
                msg: "Expected a country of ISO 3166-1, by code or name",
              },
            ],
          },
        },
      },
      handle: async ({ body }) => {
        const country = countries.get(folded(body.address.country));
        if (country === undefined) {
          const expectation = "Expected a country of ISO 3166-1, by code or name";
          throw invalidRequest("body", "address.country", expectation, "unknown_country");
        }
        for (const [one, other] of [
          ["lat", "lng"],
          ["lng", "lat"],
        ] as const) {
          if (body[one] === undefined && body[other] !== undefined) {
            throw invalidRequest("body", one, `Required with ${other}`, "missing");
          }
        }
        return validateAddress(body, country, { ruleset, formats });
      },
    }),
  ];
}
