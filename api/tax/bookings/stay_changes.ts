/** What becomes of a booked stay that changes: pure. */
import { type CalculationRequest, requireDays } from "../calculator/calculation_request.ts";
import { addDays } from "../calculator/law/calendar.ts";

/** Fields of a calculation that are to have another value. */
export type StayChanges = { [Field in keyof CalculationRequest]?: CalculationRequest[Field] };

/**
 * The stay with its changes. What they contradict goes: a day of departure, and prices of single
 * nights where another price is given or the night is none of the stay's any more.
 * @throws CalculationProblem invalid for a day that the calendar does not have
 */
export function adjustedRequest(stay: CalculationRequest, changes: StayChanges): CalculationRequest {
  requireDays(changes);
  const { checkout_date, nightly_rates, ...rest } = stay;
  const changed: CalculationRequest = { ...rest, ...changes };
  const end = addDays(changed.stay_date, changed.nights);
  const isWithin = ({ date }: { date: string }) => changed.stay_date <= date && date < end;
  const kept = changes.nightly_rate === undefined ? (nightly_rates ?? []).filter(isWithin) : [];
  return {
    ...changed,
    ...(changes.nightly_rates === undefined && kept.length > 0 && { nightly_rates: kept }),
    ...(changes.checkout_date === undefined && checkout_date !== undefined && { checkout_date: end }),
  };
}

/** The stay without its last `nights`, of which at least one is left. */
export function shortenedRequest(stay: CalculationRequest, nights: number): CalculationRequest {
  return adjustedRequest(stay, { nights: stay.nights - nights });
}
