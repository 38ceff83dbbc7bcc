/**
 * Facts that a request leaves out and the law asks for: what the tax could come to with them. Stars
 * and the number of rooms have no sensible default, so there the highest amount is the answer.
 */
import type { Predicate } from "../rules/rule.ts";
import type { KnownRule, PlaceRules, Terms } from "../rules/ruleset.ts";
import { adultAge, type CalculationRequest, type Stay } from "./calculation_request.ts";
import { type Evaluation, evaluate } from "./evaluation.ts";
import { type Rational, sumOf } from "./rational.ts";

export interface MissingInput {
  field: string;
  /** What is taken for it; null where that is none of what the law names. */
  assumed: string | null;
  min: Rational;
  max: Rational;
}

export interface Resolved {
  stay: Stay;
  evaluation: Evaluation;
  missing: MissingInput[];
}

type Variation = (stay: Stay) => Stay;

/** Evaluates with each way to fill in what is missing; `stay` comes back as it was answered. */
export function resolveMissing(place: PlaceRules, request: CalculationRequest, stay: Stay): Resolved {
  const asked = conditionsOf(place.rules, stay);
  let best = { stay, evaluation: evaluate(place, stay) };
  if (place.rules.length === 0) return { ...best, missing: [] };
  const highest = (variations: readonly Variation[]) => {
    for (const vary of variations) {
      const varied = vary(stay);
      const evaluation = evaluate(place, varied);
      if (totalOf(evaluation).compare(totalOf(best.evaluation)) > 0) best = { stay: varied, evaluation };
    }
  };
  const stars = request.star_rating === undefined ? starsIn(asked.predicates) : [];
  const rooms = request.property_rooms === undefined ? roomCountsIn(asked.predicates) : [];
  highest(combine(stars.map(withStars), rooms.map(withRooms)));
  const answer = best;
  const missing: MissingInput[] = [];
  const report = (field: string, taken: unknown, variations: readonly Variation[]) => {
    if (variations.length === 0) return;
    const totals = [answer.evaluation, ...variations.map((vary) => evaluate(place, vary(answer.stay)))].map(totalOf);
    const min = totals.reduce((a, b) => (a.compare(b) <= 0 ? a : b));
    const max = totals.reduce((a, b) => (a.compare(b) >= 0 ? a : b));
    const assumed = taken === undefined ? null : String(taken);
    if (min.compare(max) !== 0) missing.push({ field, assumed, min, max });
  };
  report("star_rating", answer.stay.stars, stars.map(withStars));
  report("property_rooms", answer.stay.propertyRooms, rooms.map(withRooms));
  const optional = <K extends keyof CalculationRequest>(field: K, key: keyof Stay, values: readonly unknown[]) => {
    if (request[field] === undefined)
      report(
        field,
        answer.stay[key],
        values.map((value) => (one: Stay) => ({ ...one, [key]: value })),
      );
  };
  optional("property_type", "propertyType", unique(asked.predicates.flatMap((one) => one.property_type ?? [])));
  optional("guest_country", "guestCountry", unique(asked.predicates.flatMap((one) => one.guest_country ?? [])));
  optional(
    "guest_is_resident",
    "isResident",
    asked.predicates.some((one) => one.resident !== undefined) ? [true, false] : [],
  );
  optional("purpose", "purpose", unique(asked.predicates.flatMap((one) => one.purpose ?? [])));
  optional("customer_type", "customerType", unique(asked.predicates.flatMap((one) => one.customer_type ?? [])));
  optional("channel", "channel", asked.predicates.some((one) => one.channel) ? ["direct", "platform"] : []);
  if (request.guest_ages === undefined && mayHaveChildren(request)) {
    const ages = unique(
      asked.terms.flatMap((one) => (one.persons ?? []).flatMap(({ min_age = 0 }) => [min_age, min_age - 1])),
    );
    report(
      "guest_ages",
      "adults",
      ages.filter((age) => age >= 0 && age < adultAge).map((age) => withChildren(age, request.adults)),
    );
  }
  return { ...answer, missing };
}

const totalOf = (evaluation: Evaluation): Rational => sumOf(evaluation.taxes.flatMap((tax) => tax.totals));

const withStars =
  (stars: number): Variation =>
  (stay) => ({ ...stay, stars });
const withRooms =
  (propertyRooms: number): Variation =>
  (stay) => ({ ...stay, propertyRooms });
/** All guests but the known adults, or all but one, are of this age. */
const withChildren =
  (age: number, adults: number | undefined): Variation =>
  (stay) => ({ ...stay, ages: stay.ages.map((one, index) => (index < (adults ?? 1) ? one : age)) });

function mayHaveChildren({ number_of_guests, adults }: CalculationRequest): boolean {
  return (number_of_guests ?? 1) > (adults ?? 1);
}

function combine(first: readonly Variation[], second: readonly Variation[]): Variation[] {
  if (first.length === 0 || second.length === 0) return [...first, ...second];
  return first.flatMap((one) =>
    second.map(
      (other): Variation =>
        (stay) =>
          other(one(stay)),
    ),
  );
}

/** What the versions in force around the stay ask. */
function conditionsOf(rules: readonly KnownRule[], stay: Stay): { predicates: Predicate[]; terms: Terms[] } {
  const versions = rules.flatMap((rule) =>
    rule.versions.filter(({ from, to }) => from < stay.checkout && (to === undefined || to > stay.bookingDate)),
  );
  const terms = versions.flatMap((version) => version.cases?.map((one) => one.terms) ?? [version.terms]);
  const own = versions.flatMap((version) => [version.terms.when, ...(version.cases?.map((one) => one.when) ?? [])]);
  const granted = terms.flatMap((one) => one.exemptions?.map((exemption) => exemption.when) ?? []);
  const predicates = [...own, ...granted].filter((one) => one !== undefined).flatMap(partsOf);
  return { predicates: [...new Set(predicates)], terms: [...new Set(terms)] };
}

function partsOf(predicate: Predicate): Predicate[] {
  return [predicate, ...(predicate.any ?? []).flatMap(partsOf), ...(predicate.not ? partsOf(predicate.not) : [])];
}

function starsIn(predicates: readonly Predicate[]): number[] {
  return unique(predicates.flatMap((one) => one.stars ?? []));
}

/** One number of rooms on each side of every boundary. */
function roomCountsIn(predicates: readonly Predicate[]): number[] {
  const ranges = predicates.flatMap((one) => one.property_rooms ?? []);
  return unique(
    ranges.flatMap(({ min, max }) => [...(min ? [min, min - 1] : []), ...(max ? [max, max + 1] : [])]),
  ).filter((count) => count > 0);
}

const unique = <T>(values: readonly T[]): T[] => [...new Set(values)];
