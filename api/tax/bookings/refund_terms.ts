/**
 * What is left of a booking after a refund: pure. Nights go from the end of the stay; an amount
 * lowers the price of all nights alike, to where price and tax together come to what is left to pay.
 */
import type { CalculationAnswer } from "../calculator/calculation_answer.ts";
import { CalculationProblem, type CalculationRequest } from "../calculator/calculation_request.ts";
import { addDays } from "../calculator/law/calendar.ts";
import { minorDigitsOf } from "../calculator/numbers/currency.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";
import type { BookingState } from "./booking_lifecycle.ts";
import { shortenedRequest } from "./stay_changes.ts";
import { nothingDue } from "./tax_delta.ts";

/** A refund that the booking does not bear; the message is for the caller. */
export class RefundProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RefundProblem";
  }
}

export interface RefundedStay {
  state: BookingState;
  request: CalculationRequest;
  answer: CalculationAnswer;
  /** What goes back to the guest, tax included. */
  refundedAmount: string;
}

type Calculate = (request: CalculationRequest) => CalculationAnswer;

/** @throws RefundProblem for more than is left, and where the guest would have to pay */
export function afterRefund(
  { request, answer }: { request: CalculationRequest; answer: CalculationAnswer },
  { nights, amount }: { nights?: number; amount?: string | number },
  calculate: Calculate,
): RefundedStay {
  const paid = Rational.parse(answer.total_with_tax);
  const digits = minorDigitsOf(answer.currency);
  if (nights !== undefined && nights > request.nights) {
    throw new RefundProblem(`Cannot refund ${nights} nights: ${request.nights} are left`);
  }
  const money = amount === undefined ? undefined : Rational.parse(amount);
  if (money && money.compare(paid) > 0) {
    throw new RefundProblem(`Cannot refund ${money.toFixed(digits)}: ${answer.total_with_tax} is left`);
  }
  const isAll = money ? money.compare(paid) === 0 : nights === undefined || nights === request.nights;
  if (isAll) {
    return { state: "refunded", request, answer: nothingDue(answer), refundedAmount: answer.total_with_tax };
  }
  if (money) {
    const left = priceComingTo(request, paid.minus(money), digits, calculate);
    return { state: "partially_refunded", ...left, refundedAmount: money.toFixed(digits) };
  }
  const shortened = shortenedRequest(request, nights ?? 0);
  const shorter = answerUnlessTooLow(() => calculate(shortened));
  if (!shorter) throw new RefundProblem(lessThanTaxes);
  const refunded = paid.minus(Rational.parse(shorter.total_with_tax));
  if (refunded.compare(Rational.zero) < 0) {
    // A long-stay exemption can be lost with the nights. A refund that charges is not what was asked for.
    const more = Rational.zero.minus(refunded).toFixed(digits);
    throw new RefundProblem(`Cannot refund ${nights} nights: the shorter stay costs ${more} more, taxes included`);
  }
  return { state: "partially_refunded", request: shortened, answer: shorter, refundedAmount: refunded.toFixed(digits) };
}

const lessThanTaxes = "Cannot refund so much: the price that is left would be less than the taxes in it";

/** Halvings of any price that a request can have, with room. */
const stepsMax = 200;

/**
 * The highest price, in whole minor units, that with its tax comes to no more than `target`. Where a
 * tariff jumps there may be none that comes to it exactly: then tax is reckoned on the lower one.
 */
function priceComingTo(
  request: CalculationRequest,
  target: Rational,
  digits: number,
  calculate: Calculate,
): { request: CalculationRequest; answer: CalculationAnswer } {
  const minorUnit = Rational.of(1n, 10n ** BigInt(digits));
  const rates = ratesOf(request);
  const price = sumOf(rates.map(({ rate }) => rate)).times(Rational.of(request.rooms ?? 1));
  const units = price.over(minorUnit).roundTo(Rational.one, "down").n;
  const at = (count: bigint) => {
    const share = price.isZero ? price : Rational.of(count).times(minorUnit).over(price);
    const scaled = scaledRequest(request, rates, share);
    const answer = answerUnlessTooLow(() => calculate(scaled));
    return { count, request: scaled, answer, total: answer && Rational.parse(answer.total_with_tax) };
  };
  const isWithin = ({ total }: ReturnType<typeof at>) => !total || total.compare(target) <= 0;
  let low = at(0n);
  if (!isWithin(low)) throw tooMuch(target, low.total as Rational, digits);
  let above = { count: units + 1n, total: undefined as Rational | undefined };
  for (let step = 0; above.count - low.count > 1n && step < stepsMax; step++) {
    const middle = at(nextCount(low, above, target, step));
    if (isWithin(middle)) low = middle;
    else above = middle;
  }
  if (!low.answer) throw new RefundProblem(lessThanTaxes);
  return { request: low.request, answer: low.answer };
}

/** On the line between the two by turns with the middle, so that neither jumps nor bends slow it down. */
function nextCount(
  low: { count: bigint; total: Rational | undefined },
  above: { count: bigint; total: Rational | undefined },
  target: Rational,
  step: number,
): bigint {
  const width = above.count - low.count;
  if (!low.total || !above.total || step % 3 === 2) return low.count + width / 2n;
  const share = target.minus(low.total).over(above.total.minus(low.total));
  const { n, d } = share.times(Rational.of(width));
  const guess = low.count + n / d;
  if (guess <= low.count) return low.count + 1n;
  return guess >= above.count ? above.count - 1n : guess;
}

interface NightRate {
  date: string;
  rate: Rational;
}

function ratesOf(request: CalculationRequest): NightRate[] {
  const special = new Map((request.nightly_rates ?? []).map(({ date, rate }) => [date, rate]));
  return Array.from({ length: request.nights }, (_, index) => {
    const date = addDays(request.stay_date, index);
    return { date, rate: Rational.parse(special.get(date) ?? request.nightly_rate) };
  });
}

/** Each night's price, and the parts of it that are no room, times `factor`. */
function scaledRequest(request: CalculationRequest, rates: readonly NightRate[], factor: Rational): CalculationRequest {
  const scaled = (amount: Rational) => amount.times(factor).toText(18);
  const { included_amounts } = request;
  const included = Object.entries(included_amounts ?? {}).map(([part, amount]) => [
    part,
    typeof amount === "boolean" ? amount : scaled(Rational.parse(amount)),
  ]);
  return {
    ...request,
    nightly_rates: rates.map(({ date, rate }) => ({ date, rate: scaled(rate) })),
    ...(included_amounts && { included_amounts: Object.fromEntries(included) }),
  };
}

/** Undefined for a price that is lower than the taxes in it. */
function answerUnlessTooLow(run: () => CalculationAnswer): CalculationAnswer | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CalculationProblem && error.kind === "invalid") return undefined;
    throw error;
  }
}

function tooMuch(target: Rational, due: Rational, digits: number): RefundProblem {
  return new RefundProblem(
    `Cannot refund so much: ${target.toFixed(digits)} would be left, and the stay owes ${due.toFixed(digits)} of tax at any price; refund nights, or all`,
  );
}
