/**
 * The taxing place of an address: from its coordinates, else from city, postal code and region, with
 * an honest estimate of how sure that is. Offline: what our places do not know cannot be found.
 */
import type { Jurisdiction } from "../places/jurisdiction.ts";
import { distanceKm, type Located, locate } from "../places/place_at.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import type { AddressAnswer, AddressIssue } from "./address_schema.ts";
import { citiesCalled, citiesLike, isCity, type MatchedCity } from "./city_match.ts";

/** What is known of an address when its place is looked for. */
export interface KnownAddress {
  country: string;
  city: string | null;
  district: string | null;
  postalCode: string | null;
  /** ISO 3166-2, and whether the postal code told it. */
  region: { code: string; byPostalCode: boolean } | undefined;
  point: { lat: number; lng: number } | undefined;
}

export interface FoundPlace {
  place: Jurisdiction;
  match: AddressAnswer["match"];
  alternatives: readonly Jurisdiction[];
  issues: readonly AddressIssue[];
  /** The city's name as we write it, where the address names a city of ours. */
  city: string | undefined;
}

interface ByText {
  place: Jurisdiction;
  match: AddressAnswer["match"];
  alternatives: readonly Jurisdiction[];
  issues: readonly AddressIssue[];
  city: string | undefined;
}

export function findPlace(ruleset: Ruleset, address: KnownAddress): FoundPlace {
  const byText = placeByText(ruleset, address);
  if (!address.point) return byText;
  const { lat, lng } = address.point;
  const located = locate(ruleset.places, lat, lng);
  if (!located) {
    const message = "No country is known at these coordinates";
    return { ...byText, issues: [...byText.issues, issue("coordinates", "invalid", "error", message)] };
  }
  return reconciled(ruleset, address, byText, located);
}

/** The point against the words: the narrower of two that agree, and the point where they do not. */
function reconciled(ruleset: Ruleset, address: KnownAddress, byText: ByText, located: Located): FoundPlace {
  const { lat, lng } = address.point as { lat: number; lng: number };
  const place = ruleset.placeOf(located.code) as Jurisdiction;
  const pointMatch = { level: "point" as const, method: methodOf(located) };
  const disagree = (message: string, severity: AddressIssue["severity"], confidence: number): FoundPlace => ({
    place,
    match: { ...pointMatch, confidence },
    alternatives: [byText.place, ...byText.alternatives].filter((one) => one.code !== place.code),
    issues: [...byText.issues, issue("coordinates", "mismatch", severity, message)],
    city: byText.city,
  });
  const pointStack = ruleset.stackOf(place.code);
  const root = pointStack.at(-1) as Jurisdiction;
  const isTerritory = root.otherCodes.some((code) => code.startsWith(`${address.country}-`));
  if (root.code !== address.country && !isTerritory) {
    return disagree(`The coordinates are in ${root.name}, not in ${nameOf(ruleset, address.country)}`, "error", 0.5);
  }
  if (isTerritory || isAbove(ruleset, byText.place.code, place.code)) {
    const agrees = byText.place.code === place.code;
    const confidence = agrees ? 0.97 : pointConfidence(ruleset, located, place);
    return { ...byText, place, match: { ...pointMatch, confidence }, alternatives: agrees ? [] : byText.alternatives };
  }
  if (isAbove(ruleset, place.code, byText.place.code)) {
    // The words are narrower. They hold unless the point is clearly elsewhere.
    const { centroid, radiusKm = 10, name } = byText.place;
    const awayKm = centroid ? distanceKm(lat, lng, centroid[1], centroid[0]) : 0;
    if (awayKm > 2 * radiusKm + 5) {
      return disagree(`The coordinates are ${Math.round(awayKm)} km away from the middle of ${name}`, "warning", 0.5);
    }
    return { ...byText, match: { ...byText.match, confidence: Math.min(byText.match.confidence, 0.85) } };
  }
  return disagree(`The coordinates are in ${place.name}, the address is in ${byText.place.name}`, "warning", 0.5);
}

function pointConfidence(ruleset: Ruleset, { by, awayKm = 0 }: Located, place: Jurisdiction): number {
  if (by === "zone") return 0.95;
  if (by === "city") return rounded(0.95 - 0.3 * (awayKm / (place.radiusKm ?? 10)));
  return taxesBelow(ruleset, place.code) ? (by === "division" ? 0.65 : 0.5) : 0.85;
}

const methodOf = ({ by, awayKm = 0 }: Located) =>
  ({
    zone: "coordinates inside the zone",
    city: `coordinates ${awayKm.toFixed(1)} km from the middle of the city`,
    division: "coordinates inside the division; no city that we know reaches them",
    country: "coordinates inside the country; no narrower place that we know reaches them",
  })[by];

function placeByText(ruleset: Ruleset, address: KnownAddress): ByText {
  const { country, city, district, postalCode, region } = address;
  const own = [...ruleset.places.values()].filter((place) => place.country === country);
  const regionPlace = region && ruleset.placeOf(region.code);
  const isInRegion = ({ code }: Jurisdiction) =>
    !regionPlace || isAbove(ruleset, regionPlace.code, code) || isAbove(ruleset, code, regionPlace.code);

  const named = city === null ? [] : citiesCalled(city, own);
  const inRegion = named.filter(({ place }) => isInRegion(place));
  const zone = zoneOf(ruleset, own, { district, postalCode, cities: inRegion, isInRegion });
  const [first, ...others] = narrowestFirst(ruleset, inRegion);
  if (first) {
    const isSure = others.length === 0 || isAbove(ruleset, others[0]?.place.code ?? "", first.place.code);
    const confidence = isSure ? (regionPlace ? 0.92 : 0.85) : 0.5;
    const place = zone ?? first.place;
    return {
      place,
      match: {
        level: zone && !district ? "postcode" : "city",
        confidence,
        method: isSure
          ? `name of the city${regionPlace ? " and its region" : ""}`
          : "one of several cities of that name",
      },
      alternatives: isSure ? [] : others.map((one) => one.place),
      issues: [],
      city: first.written,
    };
  }
  const elsewhere = named.filter(isCity).map((one) => one.place);
  const issues =
    elsewhere.length > 0 && regionPlace
      ? [issue("city", "mismatch", "warning", `The ${city} that we know is not in ${regionPlace.name}`)]
      : [];
  const like = city === null ? [] : citiesLike(city, own.filter(isInRegion));
  const alternatives = [...elsewhere, ...like];
  if (zone) {
    const match = { level: "postcode" as const, confidence: 0.8, method: "postal code of the place" };
    return { place: zone, match, alternatives, issues, city: undefined };
  }
  const place = regionPlace ?? (ruleset.placeOf(country) as Jurisdiction);
  const doubt = alternatives.length > 0 ? 0.15 : 0;
  return {
    place,
    match: regionPlace
      ? {
          level: region?.byPostalCode ? "postcode" : "region",
          confidence: rounded((taxesBelow(ruleset, place.code) ? 0.6 : 0.8) - doubt),
          method: region?.byPostalCode ? "region of the postal code" : "name of the region",
        }
      : {
          level: "country",
          confidence: rounded((taxesBelow(ruleset, place.code) ? 0.4 : 0.8) - doubt),
          method: "country alone; nothing narrower is known of the address",
        },
    alternatives,
    issues,
    city: undefined,
  };
}

/** A place that a district's name or the postal code picks out, inside the city where one was found. */
function zoneOf(
  ruleset: Ruleset,
  own: readonly Jurisdiction[],
  known: {
    district: string | null;
    postalCode: string | null;
    cities: readonly MatchedCity[];
    isInRegion(place: Jurisdiction): boolean;
  },
): Jurisdiction | undefined {
  const isInside = (place: Jurisdiction) =>
    known.isInRegion(place) &&
    (known.cities.length === 0 || known.cities.some((city) => isAbove(ruleset, city.place.code, place.code)));
  const named = known.district === null ? [] : citiesCalled(known.district, own).map((one) => one.place);
  const compact = known.postalCode?.replace(/[\s-]/g, "");
  const coded =
    compact === undefined
      ? []
      : own.filter(({ postcodes }) => postcodes.some((prefix) => compact.startsWith(prefix.replace(/[\s-]/g, ""))));
  const found = [...named.filter((place) => known.cities.some((city) => city.place.code !== place.code)), ...coded];
  return found.filter(isInside).sort((a, b) => depthOf(ruleset, b) - depthOf(ruleset, a))[0];
}

/** Of places with one name: those with rules of their own first, then the narrower. */
function narrowestFirst(ruleset: Ruleset, cities: readonly MatchedCity[]): MatchedCity[] {
  const ownRules = ({ place }: MatchedCity) =>
    Number(ruleset.rulesIn(place.code)?.rules.some((rule) => rule.jurisdiction === place.code) ?? false);
  return [...cities].sort((a, b) => ownRules(b) - ownRules(a) || depthOf(ruleset, b.place) - depthOf(ruleset, a.place));
}

const depthOf = (ruleset: Ruleset, place: Jurisdiction) => ruleset.stackOf(place.code).length;

/** Whether `above` is `code` or one of the places above it. */
const isAbove = (ruleset: Ruleset, above: string, code: string) =>
  ruleset.stackOf(code).some((place) => place.code === above);

const nameOf = (ruleset: Ruleset, code: string) => ruleset.placeOf(code)?.name ?? code;
const rounded = (value: number) => Math.round(value * 100) / 100;

const issue = (
  field: AddressIssue["field"],
  code: AddressIssue["code"],
  severity: AddressIssue["severity"],
  message: string,
): AddressIssue => ({ field, code, severity, message });

const taxingAbove = new WeakMap<Ruleset, ReadonlySet<string>>();

/** Whether a place below has rules of its own, so that knowing this one is not enough. */
function taxesBelow(ruleset: Ruleset, code: string): boolean {
  let above = taxingAbove.get(ruleset);
  if (!above) {
    const taxing = new Set([...ruleset.rules.values()].map((rule) => rule.jurisdiction));
    above = new Set(
      [...taxing].flatMap((one) =>
        ruleset
          .stackOf(one)
          .slice(1)
          .map((place) => place.code),
      ),
    );
    taxingAbove.set(ruleset, above);
  }
  return above.has(code);
}
