/**
 * The published cases beside this repository, `../shared/tax-cases/public.json`, as requests to the
 * calculator. Their codes are hints: here is which place each means, and what else its text says.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface PublicCase {
  id: string;
  jurisdiction: string;
  confidence: "high" | "medium";
  expectedTax: string;
  /** Which of `totals_by_kind` add up to `expectedTax`. */
  kinds: readonly string[];
  request: Record<string, unknown>;
}

interface Published {
  id: string;
  jurisdiction: string;
  code_hint: string;
  stay_date: string;
  nights: number;
  rooms: number;
  guests: { adults: number; child_ages: number[] };
  property_class: string;
  nightly_rate: number | null;
  currency: string;
  expected_tax: string;
  confidence: "high" | "medium";
  kinds?: string[];
}

const file = fileURLToPath(new URL("../../../../shared/tax-cases/public.json", import.meta.url));

/** Codes of hints that are not ours. */
const places: Readonly<Record<string, string>> = {
  "DE-NI": "DE-NI-HAJ",
  "DE-SN": "DE-SN-DRS",
  "DE-NW": "DE-NW-CGN",
  "US-CA-SFO": "US-CA-SFO-TID1",
  "JP-26": "JP-26-UKY",
  "IT-RM": "IT-RM-ROM",
  "IT-VE": "IT-VE-VCE",
};

/** What a case says in words. */
const facts: Readonly<Record<string, Record<string, unknown>>> = {
  "HK-3": { price_includes_tax: true, included_amounts: { service_charge: "88.495575" } },
  "AU-VIC-1": { nightly_rate: "677.25", price_includes_tax: true },
  "AU-VIC-3": { nightly_rate: "2938.53", price_includes_tax: true },
  "AB-1": { price_includes_tax: true },
  "DE-BE-3": { purpose: "business" },
  "DE-DD-1": { price_includes_tax: true },
  "DE-DD-3": { price_includes_tax: true },
  "DE-H-1": { price_includes_tax: true },
  "DE-K-1": { price_includes_tax: true },
  "DE-K-3": { price_includes_tax: true, included_amounts: { breakfast: true } },
  "IN-1": { declared_tariff: "7000" },
  "IN-3": { declared_tariff: "7500" },
  "JP-01-3": { number_of_guests: 2, guest_ages: [40, 40] },
  "MY-1": { guest_country: "GB" },
};

/** Undefined where the file is not there. */
export function readPublicCases(): PublicCase[] | undefined {
  if (!existsSync(file)) return undefined;
  const { cases } = JSON.parse(readFileSync(file, "utf8")) as { cases: Published[] };
  return cases.map((one) => ({
    id: one.id,
    jurisdiction: one.jurisdiction,
    confidence: one.confidence,
    expectedTax: one.expected_tax,
    kinds: one.kinds ?? ["accommodation"],
    request: { ...requestOf(one), ...facts[one.id] },
  }));
}

function requestOf(one: Published): Record<string, unknown> {
  const { adults, child_ages } = one.guests;
  const stars = /^(\w+)_(\d)star$/.exec(one.property_class);
  const rooms = /^(\w+?)_(\d+)(?:plus|_(\d+))_rooms$/.exec(one.property_class);
  return {
    jurisdiction_code: places[one.code_hint] ?? one.code_hint,
    stay_date: one.stay_date,
    nights: one.nights,
    rooms: one.rooms,
    number_of_guests: adults + child_ages.length,
    ...(child_ages.length > 0 && { guest_ages: [...Array.from({ length: adults }, () => 40), ...child_ages] }),
    property_type: stars?.[1] ?? rooms?.[1] ?? one.property_class,
    ...(stars && { star_rating: Number(stars[2]) }),
    ...(rooms && { property_rooms: Number(rooms[2]) }),
    nightly_rate: one.nightly_rate,
    currency: one.currency,
  };
}
