/** Which of our cities somebody means by a name, and which they may have meant. */

import type { Jurisdiction } from "../places/jurisdiction.ts";
import { folded } from "../places/jurisdictions.ts";

const cityTypes: ReadonlySet<Jurisdiction["type"]> = new Set(["city", "municipality", "special_zone", "district"]);

export interface MatchedCity {
  place: Jurisdiction;
  /** The name as we write it, in the language in which it was given. */
  written: string;
}

/**
 * Places that are called so: cities first, then counties and divisions of that name, which is how a
 * city that is a division of its own (Berlin, Geneva, Tokyo) is known.
 */
export function citiesCalled(name: string, places: readonly Jurisdiction[]): MatchedCity[] {
  const wanted = folded(name);
  const found = places.flatMap((place) => {
    const same = namesOf(place).filter((one) => folded(one) === wanted);
    return same.length === 0 ? [] : [{ place, written: writtenAs(name, same) }];
  });
  const cities = found.filter(isCity);
  return cities.length > 0 ? cities : found.filter(({ place }) => place.type !== "country");
}

/** Whether it is a city in name as well, not a division that is called like one. */
export const isCity = ({ place }: MatchedCity) => cityTypes.has(place.type);

/** A name as we write it; accents and spellings that somebody chose stay theirs, capitals throughout do not. */
function writtenAs(given: string, names: readonly string[]): string {
  const lower = given.toLowerCase();
  const sameLetters = names.find((one) => one.toLowerCase() === lower);
  const isShouted = given === given.toUpperCase() || given === lower;
  return sameLetters ?? (isShouted ? (names[0] ?? given) : given);
}

/** Cities whose name is a typing error away. */
export function citiesLike(name: string, places: readonly Jurisdiction[]): Jurisdiction[] {
  const wanted = folded(name);
  const allowed = wanted.length >= 8 ? 2 : wanted.length >= 5 ? 1 : 0;
  if (allowed === 0) return [];
  return places
    .filter((place) => cityTypes.has(place.type))
    .map((place) => ({
      place,
      edits: Math.min(...namesOf(place).map((one) => editsBetween(folded(one), wanted, allowed))),
    }))
    .filter(({ edits }) => edits <= allowed)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 5)
    .map(({ place }) => place);
}

const namesOf = ({ name, localName, aliases }: Jurisdiction) => [name, ...(localName ? [localName] : []), ...aliases];

/** Letters to add, drop or change (Levenshtein); infinite above `max`, which bounds the work. */
export function editsBetween(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) > max) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  const edits = row[b.length] ?? Number.POSITIVE_INFINITY;
  return edits <= max ? edits : Number.POSITIVE_INFINITY;
}
