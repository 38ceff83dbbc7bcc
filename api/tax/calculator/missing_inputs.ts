/**
 * Facts that a request leaves out and the law asks for: what the tax could come to with them. Stars
 * and the number of rooms have no sensible default, so there the highest amount is the answer.
 */
import type { Predicate } from "../rules/rule.ts";
import {
  allTermsOf,
  dependenciesOf,
  joinsBaseOf,
  type KnownRule,
  type KnownVersion,
  type PlaceRules,
  type Terms,
} from "../rules/ruleset.ts";
import { adultAge, type CalculationRequest, type Stay } from "./calculation_request.ts";
import { type Evaluation, evaluate } from "./evaluation.ts";
import { periodOf } from "./law/law_periods.ts";
import { type Rational, sumOf } from "./numbers/rational.ts";
import type { RuleTax } from "./rule_tax.ts";

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
  const asked = conditionsIn(place, stay);
  let best = { stay, evaluation: evaluate(place, stay) };
  if (place.rules.length === 0) return { ...best, missing: [] };
  const highest = (variations: readonly Variation[]) => {
    const known = variations.length > 0 ? unmovedBy(place, ["stars", "property_rooms"], best) : undefined;
    for (const vary of variations) {
      const varied = vary(stay);
      const evaluation = evaluate(place, varied, known);
      if (totalOf(evaluation).compare(totalOf(best.evaluation)) > 0) best = { stay: varied, evaluation };
    }
  };
  const stars = request.star_rating === undefined ? starsIn(asked.predicates) : [];
  const rooms = request.property_rooms === undefined ? roomCountsIn(asked.predicates) : [];
  highest(combine(stars.map(withStars), rooms.map(withRooms)));
  const answer = best;
  const missing: MissingInput[] = [];
  const report = (field: string, fact: Fact, taken: unknown, variations: readonly Variation[]) => {
    if (variations.length === 0) return;
    const known = unmovedBy(place, [fact], answer);
    const evaluations = variations.map((vary) => evaluate(place, vary(answer.stay), known));
    const totals = [answer.evaluation, ...evaluations].map(totalOf);
    const min = totals.reduce((a, b) => (a.compare(b) <= 0 ? a : b));
    const max = totals.reduce((a, b) => (a.compare(b) >= 0 ? a : b));
    const assumed = taken === undefined ? null : String(taken);
    if (min.compare(max) !== 0) missing.push({ field, assumed, min, max });
  };
  report("star_rating", "stars", answer.stay.stars, stars.map(withStars));
  report("property_rooms", "property_rooms", answer.stay.propertyRooms, rooms.map(withRooms));
  const optional = (field: keyof CalculationRequest, fact: Fact, key: keyof Stay, values: readonly unknown[]) => {
    if (request[field] === undefined)
      report(
        field,
        fact,
        answer.stay[key],
        values.map((value) => (one: Stay) => ({ ...one, [key]: value })),
      );
  };
  optional(
    "property_type",
    "property_type",
    "propertyType",
    unique(asked.predicates.flatMap((one) => one.property_type ?? [])),
  );
  optional(
    "guest_country",
    "guest_country",
    "guestCountry",
    unique(asked.predicates.flatMap((one) => one.guest_country ?? [])),
  );
  optional(
    "guest_is_resident",
    "resident",
    "isResident",
    asked.predicates.some((one) => one.resident !== undefined) ? [true, false] : [],
  );
  optional("purpose", "purpose", "purpose", unique(asked.predicates.flatMap((one) => one.purpose ?? [])));
  optional(
    "customer_type",
    "customer_type",
    "customerType",
    unique(asked.predicates.flatMap((one) => one.customer_type ?? [])),
  );
  optional("channel", "channel", "channel", asked.predicates.some((one) => one.channel) ? ["direct", "platform"] : []);
  if (request.guest_ages === undefined && mayHaveChildren(request)) {
    const ages = unique(
      asked.terms.flatMap((one) => (one.persons ?? []).flatMap(({ min_age = 0 }) => [min_age, min_age - 1])),
    );
    report(
      "guest_ages",
      "ages",
      "adults",
      ages.filter((age) => age >= 0 && age < adultAge).map((age) => withChildren(age, request.adults)),
    );
  }
  return { ...answer, missing };
}

/** Keys of a predicate that ask for it, and the ages of guests. */
type Fact = keyof Predicate | "ages";

/** What rules come to that a change of these facts cannot move. */
function unmovedBy(
  place: PlaceRules,
  facts: readonly Fact[],
  { stay, evaluation }: Pick<Resolved, "stay" | "evaluation">,
): ReadonlyMap<string, RuleTax> | undefined {
  // The price without tax depends on every rule.
  if (stay.priceIncludesTax) return undefined;
  const moved = movedBy(place, facts);
  const unmoved = evaluation.taxes.filter(({ rule }) => !moved.has(rule.id));
  return new Map(unmoved.map((tax) => [tax.rule.id, tax]));
}

const movedIn = new WeakMap<PlaceRules, Map<string, ReadonlySet<string>>>();

/** Ids of rules that ask for one of these facts, and of all that need what those come to. */
function movedBy(place: PlaceRules, facts: readonly Fact[]): ReadonlySet<string> {
  const known = movedIn.get(place) ?? new Map<string, ReadonlySet<string>>();
  movedIn.set(place, known);
  const key = facts.join();
  const found = known.get(key);
  if (found) return found;
  const moved = new Set<string>();
  // In order of dependence: what a rule needs comes before it.
  for (const rule of place.rules) {
    const isAsked = facts.some((fact) => (fact === "ages" ? mayCountHeads(rule) : factsIn(rule).has(fact)));
    const needsMoved = place.rules.some(
      (other) => moved.has(other.id) && (dependenciesOf(rule).has(other.id) || joinsBaseOf(rule, other)),
    );
    const isOnGross = allTermsOf(rule).some(({ base }) => base?.price === "gross");
    const isGeneralMoved = isOnGross && place.rules.some((one) => isGeneral(one) && isAskedOf(one, facts));
    if (isAsked || needsMoved || isGeneralMoved) moved.add(rule.id);
  }
  known.set(key, moved);
  return moved;
}

const isGeneral = ({ kind }: KnownRule) => kind === "vat" || kind === "sales";
const isAskedOf = (rule: KnownRule, facts: readonly Fact[]) =>
  facts.some((fact) => fact === "ages" || factsIn(rule).has(fact));

/** By heads, or by a price that is divided by them. */
function mayCountHeads(rule: KnownRule): boolean {
  return allTermsOf(rule).some(
    ({ unit, persons, cap, floor, threshold, amount, base }) =>
      unit?.startsWith("person") ||
      persons !== undefined ||
      [cap?.per, floor?.per].some((per) => per?.startsWith("person")) ||
      [threshold?.key, amount?.bands?.key].some((priceKey) => priceKey?.includes("person")) ||
      base?.deduct !== undefined,
  );
}

const factsOf = new WeakMap<KnownRule, ReadonlySet<string>>();

function factsIn(rule: KnownRule): ReadonlySet<string> {
  let facts = factsOf.get(rule);
  if (!facts) {
    facts = new Set(predicatesOf(rule.versions).flatMap((one) => Object.keys(one)));
    factsOf.set(rule, facts);
  }
  return facts;
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

interface Conditions {
  predicates: readonly Predicate[];
  terms: readonly Terms[];
}

const conditionsOf = new WeakMap<PlaceRules, Map<string, Conditions>>();

/** What the versions in force around the stay ask. */
function conditionsIn(place: PlaceRules, stay: Stay): Conditions {
  const known = conditionsOf.get(place) ?? new Map<string, Conditions>();
  conditionsOf.set(place, known);
  // Versions that begin on the day of departure are not asked: the last night decides.
  const key = `${periodOf(place, stay.bookingDate)} ${periodOf(place, stay.dates.at(-1) ?? stay.checkin)}`;
  const found = known.get(key);
  if (found) return found;
  const versions = place.rules.flatMap((rule) =>
    rule.versions.filter(({ from, to }) => from < stay.checkout && (to === undefined || to > stay.bookingDate)),
  );
  const terms = new Set(versions.flatMap((version) => version.cases?.map((one) => one.terms) ?? [version.terms]));
  const conditions = { predicates: [...new Set(predicatesOf(versions))], terms: [...terms] };
  known.set(key, conditions);
  return conditions;
}

/** All conditions of versions, those within others too. */
function predicatesOf(versions: readonly KnownVersion[]): Predicate[] {
  const terms = versions.flatMap((version) => version.cases?.map((one) => one.terms) ?? [version.terms]);
  const own = versions.flatMap((version) => [version.terms.when, ...(version.cases?.map((one) => one.when) ?? [])]);
  const granted = terms.flatMap((one) => one.exemptions?.map((exemption) => exemption.when) ?? []);
  return [...own, ...granted].filter((one) => one !== undefined).flatMap(partsOf);
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
