/**
 * The calculator: a stay and the law in, what is owed out. Pure: the same request, rules and day
 * give the same answer, whenever and wherever.
 */
import { createHash } from "node:crypto";
import { isSurelyOutside } from "../places/place_at.ts";
import type { PlaceRules, Ruleset } from "../rules/ruleset.ts";
import { answerFrom, type CalculationAnswer, shownTotal } from "./calculation_answer.ts";
import { CalculationProblem, type CalculationRequest, type Stay, stayFrom } from "./calculation_request.ts";
import {
  type Completeness,
  requireComplete,
  type SlotReport,
  slotReports,
  statusOf,
  untaxedIn,
  withLapsedTariffs,
} from "./completeness.ts";
import { type Evaluation, evaluate } from "./evaluation.ts";
import { lawKnownAt } from "./law/known_law.ts";
import { periodOf } from "./law/law_periods.ts";
import { type MissingInput, resolveMissing } from "./missing_inputs.ts";
import { minorDigitsOf } from "./numbers/currency.ts";
import type { Rational } from "./numbers/rational.ts";

export interface CalculationOptions {
  /** The day of calculation, YYYY-MM-DD: what is left out counts as booked today. */
  today: string;
  /** The code of the place at a point, for requests that give coordinates. */
  locate?(latitude: number, longitude: number): string | undefined;
}

/**
 * Calculates at the place that the request names.
 * @throws CalculationProblem
 */
export function calculate(
  request: CalculationRequest,
  ruleset: Ruleset,
  options: CalculationOptions,
): CalculationAnswer {
  return calculateWith(placeRulesFor(request, ruleset, options), request, options.today);
}

/**
 * Calculates by given rules: a booking's frozen ones, or today's.
 * @throws CalculationProblem
 */
export function calculateWith(place: PlaceRules, request: CalculationRequest, today: string): CalculationAnswer {
  const asked = stayFrom(request, today);
  const law = asked.asKnownAt === undefined ? place : lawKnownAt(place, asked.asKnownAt);
  const { stay, evaluation, missing } = resolveMissing(law, request, asked);
  const completeness = completenessOf(law, stay, evaluation, missing);
  requireComplete(request, completeness);
  return answerFrom(law, stay, evaluation, missing, completeness);
}

const slotsOf = new WeakMap<PlaceRules, Map<string, readonly SlotReport[]>>();
const slotsKeptMax = 100;

/** What is known of the slots is the same on all days of a span in which the law stays as it is. */
function slotsKnown(law: PlaceRules, stay: Stay, untaxed: ReadonlySet<string>): readonly SlotReport[] {
  const days = [stay.checkin, stay.dates.at(-1) ?? stay.checkin, stay.checkout, stay.bookingDate, stay.paymentDate];
  const key = `${stay.today} ${stay.sellerVatStatus} ${days.map((day) => periodOf(law, day)).join()} ${[...untaxed].join()}`;
  const kept = slotsOf.get(law) ?? new Map<string, readonly SlotReport[]>();
  slotsOf.set(law, kept);
  const known = kept.get(key);
  if (known) return known;
  const reports = slotReports(law, { ...stay, stay }, untaxed);
  const [oldest] = kept.keys();
  if (kept.size >= slotsKeptMax && oldest !== undefined) kept.delete(oldest);
  kept.set(key, reports);
  return reports;
}

/** What the answer knows, with the least and the most that the stay may come to. */
function completenessOf(
  law: PlaceRules,
  stay: Stay,
  evaluation: Evaluation,
  missing: readonly MissingInput[],
): Completeness {
  const slots = [...slotsKnown(law, stay, untaxedIn(evaluation.taxes))];
  const total = shownTotal(evaluation, stay);
  const hasLapsed = slots.some(({ state }) => state === "lapsed");
  const most = hasLapsed ? shownTotal(evaluate(withLapsedTariffs(law), stay), stay) : total;
  const isOpen = slots.some(({ state }) => state === "unknown" || state === "announced");
  const pick = (amounts: readonly Rational[], sign: number) =>
    amounts.reduce((a, b) => (a.compare(b) * sign >= 0 ? a : b)).toFixed(minorDigitsOf(stay.currency));
  return {
    status: statusOf(slots),
    slots,
    min_total_tax: pick([total, ...missing.map(({ min }) => min)], -1),
    max_total_tax: isOpen ? null : pick([most, total, ...missing.map(({ max }) => max)], 1),
  };
}

/**
 * The rules of the place that a request names by code or point.
 * @throws CalculationProblem unknown_jurisdiction, missing_coordinates
 */
export function placeRulesFor(
  request: Pick<CalculationRequest, "jurisdiction_code" | "latitude" | "longitude">,
  ruleset: Ruleset,
  { locate }: Pick<CalculationOptions, "locate">,
): PlaceRules {
  const { jurisdiction_code, latitude, longitude } = request;
  if (jurisdiction_code !== undefined) return known(ruleset, jurisdiction_code.toUpperCase());
  if (latitude === undefined || longitude === undefined) {
    throw new CalculationProblem(
      "missing_coordinates",
      "missing coordinates: give jurisdiction_code, or latitude and longitude",
    );
  }
  const code = locate?.(latitude, longitude);
  if (code === undefined) {
    throw new CalculationProblem(
      "unknown_jurisdiction",
      `unknown jurisdiction: no place is known at ${latitude}, ${longitude}`,
    );
  }
  return outsideOfZones(known(ruleset, code), ruleset, latitude, longitude);
}

const withoutZones = new WeakMap<PlaceRules, Map<string, PlaceRules>>();

/** The rules of a place at a point of it: zones that tax as well and that the point is surely not in are settled. */
function outsideOfZones(place: PlaceRules, { places }: Ruleset, latitude: number, longitude: number): PlaceRules {
  const isAway = (code: string) => {
    const zone = places.get(code);
    return zone !== undefined && isSurelyOutside(zone, latitude, longitude);
  };
  const zones = new Set((place.slots ?? []).flatMap((slot) => slot.zones.map(({ code }) => code)));
  const away = [...zones].filter(isAway);
  if (away.length === 0) return place;
  const kept = withoutZones.get(place) ?? new Map<string, PlaceRules>();
  withoutZones.set(place, kept);
  const key = away.join();
  let settled = kept.get(key);
  if (!settled) {
    const slots = place.slots?.map((slot) => ({
      ...slot,
      zones: slot.zones.filter(({ code }) => !away.includes(code)),
    }));
    const hash = createHash("sha256").update(`${place.hash} outside ${key}`).digest("hex");
    settled = { ...place, ...(slots && { slots }), hash };
    kept.set(key, settled);
  }
  return settled;
}

function known(ruleset: Ruleset, code: string): PlaceRules {
  const place = ruleset.rulesIn(code);
  if (!place)
    throw new CalculationProblem("unknown_jurisdiction", `unknown jurisdiction: ${code}`, "jurisdiction_code");
  return place;
}
