/** Which region of a country somebody means: by postal abbreviation, ISO 3166-2 code or name in any language we know. */

import type { Jurisdiction } from "../places/jurisdiction.ts";
import { folded } from "../places/jurisdictions.ts";
import type { AddressFormat, AddressRegion } from "./address_formats.ts";

/** Countries whose post writes abbreviations, which stand as keys in the data. */
const abbreviating: ReadonlySet<string> = new Set(["AU", "BR", "CA", "IT", "US"]);

export interface MatchedRegion {
  /** As an address writes it. */
  written: string;
  /** ISO 3166-2, where it has a code. */
  code: string | undefined;
  /** Of the address data; undefined for one that only our places know. */
  region: AddressRegion | undefined;
}

/** @param places the country's divisions among our jurisdictions */
export function matchedRegion(
  text: string,
  country: string,
  format: AddressFormat,
  places: readonly Jurisdiction[],
  language: string | undefined,
): MatchedRegion | undefined {
  const wanted = comparable(text);
  const region = (format.regions ?? []).find((one) =>
    namesOf(one, country).some((name) => comparable(name) === wanted),
  );
  if (region) return matchedAs(region, country, format, text, language);
  const place = places.find(
    ({ code, name, localName, aliases, otherCodes }) =>
      [code, code.slice(country.length + 1), ...otherCodes].some((one) => one.toLowerCase() === wanted) ||
      [name, localName ?? name, ...aliases].some((one) => comparable(one) === wanted),
  );
  if (!place) return undefined;
  const known = (format.regions ?? []).find((one) => one.code === place.code);
  if (known) return matchedAs(known, country, format, text, language);
  // In the language in which it was given.
  const written = [place.name, place.localName, ...place.aliases].find((one) => one && comparable(one) === wanted);
  return { written: written ?? place.name, code: place.code, region: undefined };
}

/** A region of the data, written as its country does. `like` shows the script that is wanted. */
export function matchedAs(
  region: AddressRegion,
  country: string,
  format: AddressFormat,
  like: string,
  language: string | undefined,
): MatchedRegion {
  const local = abbreviating.has(country) ? region.key : (region.name ?? region.key);
  const spoken = language?.slice(0, 2).toLowerCase();
  const wantsLatin = spoken === undefined ? isLatin(like) : !(format.languages ?? []).includes(spoken);
  const inLatin = [region.latin_name, region.key].find((one) => one !== undefined && isLatin(one));
  const written = isLatin(local) || !wantsLatin ? local : (inLatin ?? local);
  return { written, code: region.code, region };
}

/** Whether a text has no letters but Latin ones. */
export const isLatin = (text: string) => !/(?!\p{Script=Latin})\p{L}/u.test(text);

function namesOf({ key, name, latin_name, other_names = [], code }: AddressRegion, country: string): string[] {
  const codes = code === undefined ? [] : [code, code.slice(country.length + 1)];
  return [key, name, latin_name, ...other_names, ...codes].filter((one) => one !== undefined);
}

/** Names without what people leave out or add. */
const comparable = (text: string) =>
  folded(text)
    .replace(/[.,']/g, "")
    .replace(/\s*-\s*/g, " ")
    .replace(/^(state|province|prefecture|region|canton|county) of /, "")
    .replace(/ (state|province|prefecture|canton|ken|fu)$/, "")
    .trim();
