/** The law as it was known on a day: what a replay calculates by. */
import type { KnownRule, KnownVersion, PlaceRules } from "../../rules/ruleset.ts";

/** `place` without what came to be known after `day`, YYYY-MM-DD; what that replaced goes on. */
export function lawKnownAt(place: PlaceRules, day: string): PlaceRules {
  return {
    ...place,
    rules: place.rules.map((rule): KnownRule => ({ ...rule, versions: versionsKnownAt(rule.versions, day) })),
    coverage: place.coverage.filter(({ from }) => from === undefined || from <= day),
  };
}

function versionsKnownAt(versions: readonly KnownVersion[], day: string): readonly KnownVersion[] {
  const isKnown = (version: KnownVersion) => knownFrom(version) <= day;
  const known = versions.filter(isKnown);
  return known.map((version) => {
    const { to } = version;
    const hasUnknownSuccessor = versions.some((later) => later.from === to && !isKnown(later));
    if (to === undefined || !hasUnknownSuccessor) return version;
    const [next] = known
      .map(({ from }) => from)
      .filter((from) => from >= to)
      .sort();
    return { ...version, to: next };
  });
}

/** The day on which a version became public: as announced, or as printed where that was before it took effect. */
function knownFrom({ announcedOn, from, source }: KnownVersion): string {
  if (announcedOn !== undefined) return announcedOn;
  const printed = source.printed_on === undefined ? from : lastDayOf(source.printed_on);
  return printed < from ? printed : from;
}

/** A date that may lack its day or month, as a day that is surely not before it: texts of dates are only compared. */
const lastDayOf = (date: string) => date + "-12-31".slice(date.length - 4);
