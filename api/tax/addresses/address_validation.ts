/**
 * Checks and normalises an address, offline: its country's format, its postal code, its region, and
 * the taxing place that it is in. Structure can be checked so, existence cannot: no street is known.
 */
import type { Jurisdiction } from "../places/jurisdiction.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import type { AddressFormat, AddressRegion } from "./address_formats.ts";
import { findPlace } from "./address_jurisdiction.ts";
import type {
  AddressAnswer,
  AddressChange,
  AddressField,
  AddressIssue,
  AddressPlace,
  AddressRequest,
} from "./address_schema.ts";
import { addressFields } from "./address_schema.ts";
import { type AddressParts, formattedAddress, letters } from "./formatted_address.ts";
import { normalizedPostalCode, regionsOfPostalCode } from "./postal_code.ts";
import { type MatchedRegion, matchedAs, matchedRegion } from "./region_match.ts";

export interface AddressKnowledge {
  ruleset: Ruleset;
  formats: ReadonlyMap<string, AddressFormat>;
}

/** @param country of `countryNames` */
export function validateAddress(
  request: AddressRequest,
  country: string,
  { ruleset, formats }: AddressKnowledge,
): AddressAnswer {
  const format = formats.get(country);
  const given = givenParts(request.address);
  const parts = { ...given };
  const issues: AddressIssue[] = [];
  const place = ruleset.placeOf(country) as Jurisdiction;

  const region = format && checkRegion(request, country, format, ruleset, parts, issues);
  const ofPostalCode = format && checkPostalCode(country, format, ruleset, parts, issues, region);
  const byPostalCode =
    format && ofPostalCode && matchedAs(ofPostalCode, country, format, parts.city ?? "", request.language);
  const filled = narrowerOf(ruleset, region, byPostalCode);
  // One that nobody knows stays as it was given, beside its issue.
  if (filled && (region || (parts.region === null && usesRegion(format)))) parts.region = filled.written;

  const { lat, lng } = request;
  const regionCode = filled?.code && currentCode(ruleset, filled.code);
  const found = findPlace(ruleset, {
    country,
    city: parts.city,
    district: parts.district,
    postalCode: parts.postal_code,
    region: regionCode === undefined ? undefined : { code: regionCode, byPostalCode: filled !== region },
    point: lat === undefined || lng === undefined ? undefined : { lat, lng },
  });
  if (found.city !== undefined) parts.city = found.city;
  issues.push(...found.issues);
  if (format) checkFormat(format, parts, issues);

  const changes = changesBetween(request.address, parts, country);
  const hasError = (codes: readonly string[]) =>
    issues.some((one) => one.severity === "error" && codes.includes(one.code));
  const verdict = !format
    ? "unsupported_country"
    : hasError(["invalid", "unknown_value", "mismatch"])
      ? "invalid"
      : hasError(["required"])
        ? "incomplete"
        : changes.length > 0
          ? "corrected"
          : "valid";
  const confidence = hasError(["invalid", "unknown_value"]) ? found.match.confidence * 0.7 : found.match.confidence;
  return {
    valid: verdict === "valid" || verdict === "corrected",
    verdict,
    normalized: {
      ...parts,
      region_code: regionCode ?? null,
      country,
      formatted: formattedAddress(parts, format ?? plainFormat, place.name),
    },
    changes,
    issues,
    match: { ...found.match, confidence: Math.round(confidence * 100) / 100 },
    coordinates: coordinatesOf(request, found.place),
    jurisdiction: shownPlace(ruleset, found.place),
    alternatives: [...new Set(found.alternatives)]
      .filter((one) => one.code !== found.place.code)
      .slice(0, 10)
      .map((one) => shownPlace(ruleset, one)),
  };
}

/** The region that was given, or the one that the postal code tells where that lies inside it, as a province does. */
function narrowerOf(
  ruleset: Ruleset,
  given: MatchedRegion | undefined,
  told: MatchedRegion | undefined,
): MatchedRegion | undefined {
  if (!given || !told?.code) return given ?? told;
  const isInside = ruleset.stackOf(told.code).some((place, index) => index > 0 && place.code === given.code);
  return isInside ? told : given;
}

/** ISO 3166-2's code of today for one that it has withdrawn. */
function currentCode(ruleset: Ruleset, code: string): string {
  const current = ruleset.placeOf(code)?.code ?? code;
  return current.includes("-") ? current : code;
}

/** For countries whose post nobody describes. */
const plainFormat: AddressFormat = { format: "%A%n%C", require: "", upper: "" };

function givenParts(address: AddressRequest["address"]): AddressParts {
  const part = (field: AddressField) => cleaned(address[field] ?? "") || null;
  return Object.fromEntries(addressFields.map((field) => [field, part(field)])) as AddressParts;
}

/** Text on one line, without what cannot be seen. */
const cleaned = (text: string) =>
  text
    .normalize("NFC")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();

const usesRegion = (format: AddressFormat | undefined) => format?.format.includes("%S") ?? false;

/** Recognises the region that was given; one that is not known stays as it is. */
function checkRegion(
  request: AddressRequest,
  country: string,
  format: AddressFormat,
  ruleset: Ruleset,
  parts: AddressParts,
  issues: AddressIssue[],
): MatchedRegion | undefined {
  if (parts.region === null) return undefined;
  const divisions = [...ruleset.places.values()].filter(
    (place) => place.country === country && place.parent !== undefined && /^..-[A-Z0-9]{1,3}$/.test(place.code),
  );
  const matched = matchedRegion(parts.region, country, format, divisions, request.language);
  if (!matched) {
    const isListed = (format.regions ?? []).length > 0;
    issues.push({
      field: "region",
      code: "unknown_value",
      severity: isListed ? "error" : "warning",
      message: `No ${format.region_word ?? "region"} of this country is known by that name`,
    });
  } else if (!usesRegion(format)) {
    issues.push({
      field: "region",
      code: "not_used_in_country",
      severity: "warning",
      message: "Addresses of this country are written without a region; it was used to find the place",
    });
  }
  return matched;
}

/** Puts the postal code in its country's form, holds it against the region, and answers the region that it tells. */
function checkPostalCode(
  country: string,
  format: AddressFormat,
  ruleset: Ruleset,
  parts: AddressParts,
  issues: AddressIssue[],
  region: MatchedRegion | undefined,
): AddressRegion | undefined {
  if (parts.postal_code === null) return undefined;
  if (format.postal_code === undefined) {
    const message = "This country has no postal codes; it was left out";
    issues.push({ field: "postal_code", code: "not_used_in_country", severity: "warning", message });
    parts.postal_code = null;
    return undefined;
  }
  const code = normalizedPostalCode(parts.postal_code, format);
  if (code === undefined) {
    const like = format.postal_examples?.[0];
    const message = `No postal code of this country looks so${like ? `; one does like ${like}` : ""}`;
    issues.push({ field: "postal_code", code: "invalid", severity: "error", message });
    return undefined;
  }
  parts.postal_code = code;
  const listed = regionsOfPostalCode(code, format.regions ?? []);
  const department = departmentOf(country, code, ruleset);
  const regions = listed.length === 0 && department ? [department] : listed;
  const [only, another] = regions;
  const isElsewhere =
    region?.region?.postal_code !== undefined
      ? !regions.some(({ key }) => key === region.region?.key)
      : only !== undefined &&
        region !== undefined &&
        !regions.some((one) => areRelated(ruleset, one.code, region.code));
  if (isElsewhere) {
    const where = regions.map((one) => one.latin_name ?? one.name ?? one.key).join(" or ");
    const message = `This postal code is not in ${region?.written}${where ? `, but in ${where}` : ""}`;
    issues.push({ field: "postal_code", code: "mismatch", severity: "error", message });
    return undefined;
  }
  return another === undefined ? only : undefined;
}

/** Whether one of two divisions lies in the other; one without a code may. */
function areRelated(ruleset: Ruleset, a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  const [ofA, ofB] = [ruleset.stackOf(a), ruleset.stackOf(b)];
  const [placeA, placeB] = [ofA[0], ofB[0]];
  return !placeA || !placeB || ofA.includes(placeB) || ofB.includes(placeA);
}

/** France has no list of regions in the address data: its postal codes begin with the department's number. */
function departmentOf(country: string, code: string, ruleset: Ruleset): AddressRegion | undefined {
  if (country !== "FR") return undefined;
  const corsica = /^20[01]/.test(code) ? "2A" : /^20/.test(code) ? "2B" : undefined;
  const key = corsica ?? code.slice(0, 2);
  // The Rhône and the metropolis of Lyon share theirs.
  const place = ruleset.placeOf(key === "69" ? "FR-ARA" : `FR-${key}`);
  return place && { key, name: place.localName ?? place.name, code: place.code };
}

/** What is missing, and what this country's addresses do not have. */
function checkFormat(format: AddressFormat, parts: AddressParts, issues: AddressIssue[]): void {
  const required = (field: AddressField, isMissing: boolean, what: string) => {
    if (isMissing) issues.push({ field, code: "required", severity: "error", message: `Expected ${what}` });
  };
  const needs = (letter: string) => format.require.includes(letter);
  required("line1", needs("A") && parts.line1 === null && parts.line2 === null, "a street, a post box or the like");
  required("city", needs("C") && parts.city === null, "a city");
  required("region", needs("S") && parts.region === null, `a ${format.region_word ?? "region"}`);
  required("district", needs("D") && parts.district === null, "a district");
  const hasIssue = issues.some((one) => one.field === "postal_code");
  required("postal_code", needs("Z") && parts.postal_code === null && !hasIssue, "a postal code");
  if (parts.district !== null && !format.format.includes(`%${letters.district}`)) {
    const message = "Addresses of this country are written without a district; it was used to find the place";
    issues.push({ field: "district", code: "not_used_in_country", severity: "warning", message });
  }
}

function changesBetween(before: AddressRequest["address"], after: AddressParts, country: string): AddressChange[] {
  const changes: AddressChange[] = addressFields.flatMap((field) => {
    const [from, to] = [before[field] ?? null, after[field]];
    return from === to || (from === "" && to === null) ? [] : [{ field, from, to }];
  });
  return before.country === country ? changes : [...changes, { field: "country", from: before.country, to: country }];
}

function coordinatesOf({ lat, lng }: AddressRequest, { centroid }: Jurisdiction): AddressAnswer["coordinates"] {
  if (lat !== undefined && lng !== undefined) return { lat, lng, source: "input" };
  return centroid ? { lat: centroid[1], lng: centroid[0], source: "city_centroid" } : null;
}

function shownPlace(ruleset: Ruleset, { code, name, type }: Jurisdiction): AddressPlace {
  return { code, name, type, stack: ruleset.stackOf(code).map((place) => place.code) };
}
