/**
 * Places that may tax a stay, as data: countries come from ISO 3166-1, subdivisions from ISO
 * 3166-2 where a file asks for them, and everything below or different stands in
 * `api/tax/data/jurisdictions/<cc>.json`.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { JurisdictionCode } from "../rules/rule.ts";

export const jurisdictionTypes = [
  "country",
  "territory",
  "state",
  "province",
  "region",
  "prefecture",
  "county",
  "department",
  "city",
  "municipality",
  "district",
  "special_zone",
] as const;
export const jurisdictionStatuses = ["active", "no_tax", "announced", "suspended", "retired"] as const;

const closed = { additionalProperties: false } as const;
/** GeoJSON's order: longitude, latitude. */
const Position = Type.Tuple([Type.Number({ minimum: -180, maximum: 180 }), Type.Number({ minimum: -90, maximum: 90 })]);

const PlaceName = Type.String({ minLength: 1 });

const JurisdictionEntry = Type.Object(
  {
    code: JurisdictionCode,
    name: Type.String({ minLength: 1, description: "in English" }),
    local_name: Type.Optional(Type.String({ minLength: 1 })),
    /** Other names that a search finds. */
    aliases: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    /** Other codes that a request may use, for example one that ISO has withdrawn. */
    other_codes: Type.Optional(Type.Array(JurisdictionCode)),
    type: oneOf(jurisdictionTypes),
    /** The code above; the country when absent. A country has none. */
    parent: Type.Optional(JurisdictionCode),
    status: Type.Optional(oneOf(jurisdictionStatuses)),
    /** About the middle, [longitude, latitude], and how far around it a point still belongs, in km. */
    centroid: Type.Optional(Position),
    radius_km: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 500 })),
    /** Outer ring, first point repeated last. Decides before any radius. */
    polygon: Type.Optional(Type.Array(Position, { minItems: 4 })),
    /** Postcodes or prefixes that lie inside. */
    postcodes: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    note: Type.Optional(Type.String()),
  },
  closed,
);
export type JurisdictionEntry = Static<typeof JurisdictionEntry>;

export const JurisdictionFile = Type.Object(
  {
    about: Type.String({ minLength: 3 }),
    /** Subdivisions taken from ISO 3166-2 with its names: their type, and "all" or codes. Entries below override. */
    iso_subdivisions: Type.Optional(
      Type.Array(
        Type.Object(
          {
            country: Type.String({ pattern: "^[A-Z]{2}$" }),
            type: oneOf(jurisdictionTypes),
            codes: Type.Union([Type.Literal("top_level"), Type.Array(JurisdictionCode, { minItems: 1 })]),
          },
          closed,
        ),
      ),
    ),
    /** What countries and subdivisions are called, where ISO's own name is not the English one. */
    names: Type.Optional(
      Type.Record(
        JurisdictionCode,
        Type.Object(
          { name: PlaceName, local_name: Type.Optional(PlaceName), aliases: Type.Optional(Type.Array(PlaceName)) },
          closed,
        ),
      ),
    ),
    /** Further names that people type, of places that stand in any file. */
    aliases: Type.Optional(Type.Record(JurisdictionCode, Type.Array(PlaceName, { minItems: 1 }))),
    /** ISO 3166-2 codes of what is a country of its own in ISO 3166-1: `{ "US-GU": "GU" }`. */
    same_as: Type.Optional(Type.Record(JurisdictionCode, JurisdictionCode)),
    /**
     * The ground that subdivisions cover, roughly: outer rings, each `longitude,latitude` with spaces
     * between. They tell which division a point is in where no city, zone or radius does.
     */
    areas: Type.Optional(Type.Record(JurisdictionCode, Type.Array(Type.String(), { minItems: 1 }))),
    /** How far the edges of these areas may be off, in km. */
    area_error_km: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    jurisdictions: Type.Array(JurisdictionEntry),
  },
  closed,
);
export type JurisdictionFile = Static<typeof JurisdictionFile>;

export type Ring = readonly (readonly [longitude: number, latitude: number])[];

/** A place with its defaults filled in. */
export interface Jurisdiction {
  code: string;
  name: string;
  localName: string | undefined;
  aliases: readonly string[];
  otherCodes: readonly string[];
  country: string;
  type: (typeof jurisdictionTypes)[number];
  parent: string | undefined;
  status: (typeof jurisdictionStatuses)[number] | undefined;
  centroid: readonly [longitude: number, latitude: number] | undefined;
  radiusKm: number | undefined;
  polygon: Ring | undefined;
  areas: readonly Ring[];
  areaErrorKm: number;
  postcodes: readonly string[];
}
