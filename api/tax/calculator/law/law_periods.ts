/**
 * The spans of days in which the law of a place stays as it is: what was found for one day of a span
 * holds for all of it. Kept for each place as long as its rules are.
 */
import type { PlaceRules } from "../../rules/ruleset.ts";

const boundariesOf = new WeakMap<PlaceRules, readonly string[]>();

/** Which span of `place` a day lies in. */
export function periodOf(place: PlaceRules, day: string): number {
  let days = boundariesOf.get(place);
  if (!days) {
    days = boundaries(place);
    boundariesOf.set(place, days);
  }
  let [low, high] = [0, days.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((days[middle] as string) <= day) low = middle + 1;
    else high = middle;
  }
  return low;
}

function boundaries({ rules, coverage, slots = [] }: PlaceRules): string[] {
  const days = new Set<string>();
  const add = (...some: readonly (string | undefined)[]) => {
    for (const day of some) if (day !== undefined) days.add(day);
  };
  for (const { versions } of rules) for (const { from, to, knownUntil } of versions) add(from, to, knownUntil);
  for (const { from, to } of coverage) add(from, to);
  for (const { statements, zones } of slots) {
    for (const { from, to } of [...statements, ...zones]) add(from, to);
  }
  return [...days].sort();
}
