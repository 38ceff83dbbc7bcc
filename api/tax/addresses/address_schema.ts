/** What `POST /v1/addresses/validate` takes and answers. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { jurisdictionTypes } from "../places/jurisdiction.ts";

const line = (maxLength: number, description?: string) =>
  Type.Optional(Type.String({ maxLength, ...(description && { description }) }));

export const AddressRequest = named(
  "AddressToCheck",
  Type.Object({
    address: named(
      "Address",
      Type.Object({
        line1: line(200, "street and number"),
        line2: line(200),
        city: line(100),
        district: line(100, "a part of the city, where addresses name one"),
        region: line(100, "state, province, prefecture: a name, a postal abbreviation or an ISO 3166-2 code"),
        postal_code: line(20),
        country: Type.String({
          minLength: 2,
          maxLength: 100,
          description: "an ISO 3166-1 code, or the country's name",
        }),
      }),
      {
        line2: "what else the address needs",
        city: "town",
        postal_code: "postcode",
        country: "the country",
      },
    ),
    lat: Type.Optional(Type.Number({ minimum: -90, maximum: 90 })),
    lng: Type.Optional(Type.Number({ minimum: -180, maximum: 180 })),
    language: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$",
        maxLength: 35,
        description: "a language tag; where a region's name has a Latin form, whether it is preferred",
      }),
    ),
  }),
  {
    address: "as somebody wrote it",
    lat: "of the place, in degrees",
    lng: "of the place, in degrees",
  },
);
export type AddressRequest = Static<typeof AddressRequest>;

export const addressFields = ["line1", "line2", "city", "district", "region", "postal_code"] as const;
export type AddressField = (typeof addressFields)[number];

const issueCodes = ["required", "invalid", "unknown_value", "mismatch", "not_used_in_country"] as const;
const optionalText = Type.Unsafe<string | null>({ type: ["string", "null"] });

const AddressIssue = named(
  "AddressIssue",
  Type.Object({
    field: oneOf([...addressFields, "country", "coordinates"]),
    code: oneOf(issueCodes),
    severity: oneOf(["error", "warning"]),
    message: Type.String(),
  }),
  {
    field: "the part of the address",
    code: "what kind of problem",
    severity: "an error makes the address invalid",
    message: "the problem in words",
  },
);
export type AddressIssue = Static<typeof AddressIssue>;

const AddressChange = named(
  "AddressCorrection",
  Type.Object({
    field: oneOf([...addressFields, "country"]),
    from: optionalText,
    to: optionalText,
  }),
  {
    field: "the part of the address",
    from: "as it was written; null where it was missing",
    to: "as it should be; null where it is not used",
  },
);
export type AddressChange = Static<typeof AddressChange>;

const AddressPlace = named(
  "AddressPlace",
  Type.Object({
    code: Type.String(),
    name: Type.String(),
    type: oneOf(jurisdictionTypes),
    stack: Type.Array(Type.String(), { description: "the place and those above it, itself first" }),
  }),
  {
    code: "its code in `/v1/jurisdictions`",
    name: "in English",
    type: "what kind of place it is",
  },
);
export type AddressPlace = Static<typeof AddressPlace>;

export const AddressAnswer = named(
  "CheckedAddress",
  Type.Object({
    valid: Type.Boolean({ description: "true for the verdicts valid and corrected" }),
    verdict: oneOf(["valid", "corrected", "incomplete", "invalid", "unsupported_country"]),
    normalized: named(
      "NormalizedAddress",
      Type.Object({
        line1: optionalText,
        line2: optionalText,
        city: optionalText,
        district: optionalText,
        region: optionalText,
        region_code: Type.Unsafe<string | null>({ type: ["string", "null"], description: "ISO 3166-2" }),
        postal_code: optionalText,
        country: Type.String({ description: "ISO 3166-1 alpha-2" }),
        formatted: Type.Array(Type.String(), { description: "the lines as the country's post writes them" }),
      }),
      {
        line1: "street and number",
        line2: "what else the address needs",
        city: "town",
        district: "a part of the city",
        region: "the region's name",
        region_code: "the region's code",
        postal_code: "postcode",
        country: "the country",
      },
    ),
    changes: Type.Array(AddressChange),
    issues: Type.Array(AddressIssue),
    match: named(
      "AddressMatch",
      Type.Object({
        level: oneOf(["point", "postcode", "city", "region", "country"]),
        confidence: Type.Number({
          minimum: 0,
          maximum: 1,
          description: "that the jurisdiction is the right and the narrowest one; below 0.7 somebody should look",
        }),
        method: Type.String(),
      }),
      {
        level: "how exactly the place was found",
        method: "by which of its parts it was found",
      },
    ),
    coordinates: Type.Union([
      named(
        "Coordinates",
        Type.Object({ lat: Type.Number(), lng: Type.Number(), source: oneOf(["input", "city_centroid"]) }),
        {
          lat: "in degrees",
          lng: "in degrees",
          source: "as they were given, or of the middle of the city",
        },
      ),
      Type.Null(),
    ]),
    jurisdiction: AddressPlace,
    alternatives: Type.Array(AddressPlace, { description: "other places that it may be, the likelier first" }),
  }),
  {
    verdict: "how good the address is",
    normalized: "the address as it should be written",
    changes: "what was corrected",
    issues: "what is wrong with it",
    match: "how the jurisdiction was found",
    coordinates: "where it is; null where that is not known",
    jurisdiction: "the place whose taxes are due",
  },
);
export type AddressAnswer = Static<typeof AddressAnswer>;
