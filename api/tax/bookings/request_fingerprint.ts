/**
 * Whether two requests ask for the same: the SHA-256 of what a body means, after checking and with
 * everything filled in that has a default. `100`, `100.0` and `"100"` are one amount, and the order
 * of fields says nothing. Left out and null are the same where both mean the default.
 */
import { createHash } from "node:crypto";
import { type CalculationRequest, stayFrom } from "../calculator/calculation_request.ts";
import { Rational } from "../calculator/numbers/rational.ts";

/** Of plain data without `undefined` in arrays. Hex. */
export function fingerprintOf(meaning: unknown): string {
  return createHash("sha256").update(canonicalJson(meaning)).digest("hex");
}

/** RFC 8785: fields in the order of their UTF-16 code units, no white space, numbers as JavaScript prints them. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(",")}}`;
}

/** An amount by its value. */
export function amountText(amount: string | number): string {
  return Rational.parse(amount).toText(18);
}

/**
 * What a calculation asks, with its defaults. A date that is left out stays open: it would be
 * another one tomorrow, and a request that is sent again is the same request.
 * @throws CalculationProblem invalid
 */
export function meaningOf(request: CalculationRequest): unknown {
  const {
    exchangeFrom: _,
    today: _today,
    prices,
    declaredTariff,
    included,
    ages,
    sellerVatStatus: _status,
    ...stay
  } = stayFrom(request, request.stay_date);
  const textOf = (part: (typeof included)["breakfast"]) => (part instanceof Rational ? part.toText(18) : part);
  return {
    ...stay,
    place: [request.jurisdiction_code?.toUpperCase(), request.latitude, request.longitude],
    nightlyRate: amountText(request.nightly_rate),
    prices: prices.map((price) => price.toText(18)),
    declaredTariff: declaredTariff?.toText(18),
    included: Object.fromEntries(Object.entries(included).map(([part, amount]) => [part, textOf(amount)])),
    ages,
    // Left out it is the seller's.
    sellerVatStatus: request.seller_vat_status,
    bookingDate: request.booking_date,
    paymentDate: request.payment_date,
    fx: [request.fx ?? []].flat().map((one) => ({ ...one, rate: amountText(one.rate) })),
  };
}
