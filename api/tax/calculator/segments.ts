/**
 * Which terms of a rule hold on which night. A rule's answer is made of segments: nights that one
 * version taxes on the same terms. A night without a segment is not taxed, for a reason.
 */
import type { KnownRule, KnownVersion, Terms } from "../rules/ruleset.ts";
import type { Stay } from "./calculation_request.ts";
import { counted } from "./counted.ts";
import { addMonths, isWithin } from "./law/calendar.ts";
import { holds, type Night } from "./law/predicate.ts";
import { Rational } from "./numbers/rational.ts";

export interface Exemption {
  code: string;
  reason: string;
}

export interface Segment {
  version: KnownVersion;
  terms: Terms;
  label: string | undefined;
  /** Nights that are taxed, by index. */
  taxed: readonly number[];
  exempt: readonly { index: number; exemption: Exemption }[];
}

export interface Segmentation {
  segments: readonly Segment[];
  /** Why nights lie in no segment, each reason once. */
  skipped: readonly string[];
}

/** What each of a rule's versions meets in law on each night of `stay`. */
export function segmentsOf(rule: KnownRule, stay: Stay): Segmentation {
  const open = new Map<
    Terms,
    { segment: Segment; taxed: number[]; exempt: { index: number; exemption: Exemption }[] }
  >();
  const skipped = new Set<string>();
  for (const [index, date] of stay.dates.entries()) {
    const night = { index, date };
    const found = termsOn(rule, stay, night);
    if (typeof found === "string") {
      skipped.add(found);
      continue;
    }
    const { version, terms, label } = found;
    if (isOfNothing(terms, stay)) {
      skipped.add("nothing that it is taken of is in the price");
      continue;
    }
    let entry = open.get(terms);
    if (!entry) {
      const [taxed, exempt] = [[] as number[], [] as { index: number; exemption: Exemption }[]];
      entry = { segment: { version, terms, label, taxed, exempt }, taxed, exempt };
      open.set(terms, entry);
    }
    const exemption = exemptionOn(rule, terms, stay, night);
    if (exemption) entry.exempt.push({ index, exemption });
    else entry.taxed.push(index);
  }
  return { segments: [...open.values()].map(({ segment }) => segment), skipped: [...skipped] };
}

/** Whether terms on breakfast or its like alone meet a stay whose price names none. */
function isOfNothing({ base }: Terms, { included }: Stay): boolean {
  const { includes, includes_tax = [] } = base ?? {};
  if (!includes || includes.length === 0 || includes_tax.length > 0) return false;
  return includes.every((part) => part !== "room" && !(included[part] instanceof Rational));
}

function termsOn(
  rule: KnownRule,
  stay: Stay,
  night: Night,
): { version: KnownVersion; terms: Terms; label: string | undefined } | string {
  if (rule.versions.length === 0) return "not known on the day of the replay";
  const inForce = rule.versions.filter((version) => isWithin(anchorDate(version, stay, night), version));
  if (inForce.length === 0) return "not in force on these dates";
  const open = inForce.filter(
    ({ terms }) =>
      isWithin(stay.bookingDate, terms.booking_window ?? {}) && isWithin(stay.paymentDate, terms.payment_window ?? {}),
  );
  if (open.length === 0) return "booked or paid outside the window that is taxed";
  for (const version of open) {
    if (version.terms.when && !holds(version.terms.when, stay, night, rule.seasons)) continue;
    if (!version.cases) return { version, terms: version.terms, label: undefined };
    const match = version.cases.find((one) => holds(one.when, stay, night, rule.seasons));
    if (match) return { version, terms: match.terms, label: match.label };
    if (version.otherwise === undefined && !isOutOfSeason(version, rule, stay, night)) return noTariff;
  }
  return "does not apply to this property, guest or night";
}

/** Why a night is not taxed whose property or guest the tariff that we hold does not name. */
export const noTariff = "no tariff is held for this property or guest";

/** Whether some case would hold in another season. */
function isOutOfSeason({ cases }: KnownVersion, rule: KnownRule, stay: Stay, night: Night): boolean {
  return (cases ?? []).some(({ when: { season, weekday, night_number, ...facts } }) => {
    const dependsOnNight = season !== undefined || weekday !== undefined || night_number !== undefined;
    return dependsOnNight && holds(facts, stay, night, rule.seasons);
  });
}

/** The day that decides which version holds on a night. */
export function anchorDate(version: KnownVersion, stay: Stay, night: Night): string {
  const unit = version.terms.unit ?? version.cases?.[0]?.terms.unit;
  switch (version.terms.date_anchor ?? (unit?.endsWith("stay") ? "checkin" : "night")) {
    case "checkin":
      return stay.checkin;
    case "checkout":
      return stay.checkout;
    case "booking":
      return stay.bookingDate;
    case "payment":
      return stay.paymentDate;
    default:
      return night.date;
  }
}

function exemptionOn(rule: KnownRule, terms: Terms, stay: Stay, night: Night): Exemption | undefined {
  const granted = terms.exemptions?.find((one) => holds(one.when, stay, night, rule.seasons));
  if (granted) return { code: granted.code, reason: granted.reason };
  const number = night.index + 1;
  if (terms.long_stay) {
    const { nights, months, effect } = terms.long_stay;
    const endOfShort = months === undefined ? undefined : addMonths(stay.checkin, months);
    const length = months === undefined ? counted(nights ?? 0, "nights") : counted(months, "months");
    if (effect === "from_day_n") {
      const isBeyond = endOfShort === undefined ? number >= (nights ?? 0) : night.date >= endOfShort;
      if (isBeyond) return { code: "long_stay", reason: `Not due from night ${nights ?? length} of a stay on` };
    } else if (endOfShort === undefined ? stay.nights >= (nights ?? 0) : stay.checkout >= endOfShort) {
      const notice = effect === "with_notice" ? ", given written notice at its beginning" : "";
      return { code: "long_stay", reason: `Stays of at least ${length} are exempt${notice}` };
    }
  }
  const { max, skip } = terms.nights ?? {};
  if (skip !== undefined && number <= skip)
    return {
      code: "first_nights",
      reason: skip === 1 ? "The first night is free" : `The first ${skip} nights are free`,
    };
  if (max !== undefined && number > (skip ?? 0) + max) {
    return { code: "night_limit", reason: `Only ${counted(max, "nights")} ${max === 1 ? "is" : "are"} taxed` };
  }
  return undefined;
}
