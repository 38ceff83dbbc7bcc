/**
 * What is asked: a stay at a place. The schema of the `calculation` object, and the stay that it
 * describes with everything left out filled in.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { channels, customerTypes, propertyTypes, purposes, sellerVatStatuses } from "../rules/rule.ts";
import { isCalendarDate } from "../rules/ruleset.ts";
import { addDays } from "./law/calendar.ts";
import { isCurrency } from "./numbers/currency.ts";
import { Rational } from "./numbers/rational.ts";

/** More than any price: what is read exactly has to be bounded, too. */
const amountDigitsMax = 15;
const decimalPlacesMax = 18;
const amountText = `less than 10^${amountDigitsMax} with at most ${decimalPlacesMax} decimal places, or its digits as a string`;
const digits = "\\d+(\\.\\d+)?([eE][+-]?\\d{1,3})?$";
const digitsCharsMax = 100;
const AmountAboveZero = Type.Union(
  [
    Type.Number({ exclusiveMinimum: 0 }),
    Type.String({ pattern: `^(?![0.]+([eE]|$))${digits}`, maxLength: digitsCharsMax }),
  ],
  { description: `a number greater than 0 and ${amountText}` },
);
const Amount = Type.Union(
  [Type.Number({ minimum: 0 }), Type.String({ pattern: `^${digits}`, maxLength: digitsCharsMax })],
  { description: `a number of at least 0 and ${amountText}` },
);
const IncludedAmount = Type.Union([Amount, Type.Boolean()], {
  description: "an amount for one room and night, or true where it is included without an amount of its own",
});
const CalendarDate = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "a date as YYYY-MM-DD" });
const Currency = Type.String({ pattern: "^[A-Z]{3}$", description: "an ISO 4217 code" });

const FxRate = named(
  "ExchangeRate",
  Type.Object(
    {
      /** The currency of the tax that this converts; any where it is left out. */
      from: Type.Optional(Currency),
      /** Units of the request's currency for one unit of the tax's. */
      rate: AmountAboveZero,
      source: Type.String({ minLength: 1, maxLength: 200 }),
      date: CalendarDate,
    },
    { description: "A rate of exchange for taxes that are set in another currency" },
  ),
  {
    rate: "units of the request's currency for one of the other",
    from: "the other currency",
    source: "who says so, such as a central bank",
    date: "the day that the rate is of",
  },
);
/** The `calculation` object. Fields that are null are as if they were left out (`exact_json.ts`); `unknown_fields.ts` has those that it does not name. */
export const CalculationRequest = named(
  "CalculationRequest",
  Type.Object({
    jurisdiction_code: Type.Optional(Type.String({ maxLength: 100 })),
    latitude: Type.Optional(Type.Number({ minimum: -90, maximum: 90 })),
    longitude: Type.Optional(Type.Number({ minimum: -180, maximum: 180 })),
    stay_date: CalendarDate,
    nights: Type.Integer({ minimum: 1, maximum: 366 }),
    checkout_date: Type.Optional(CalendarDate),
    nightly_rate: AmountAboveZero,
    currency: Currency,
    rooms: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    number_of_guests: Type.Optional(Type.Integer({ minimum: 1, maximum: 2000 })),
    adults: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2000,
        description: "guests of at least 18 years; with guest_ages, as many as those ages have",
      }),
    ),
    guest_ages: Type.Optional(Type.Array(Type.Integer({ minimum: 0, maximum: 130 }), { maxItems: 2000 })),
    guest_country: Type.Optional(Type.String({ pattern: "^[A-Z]{2}$", description: "an ISO 3166-1 alpha-2 code" })),
    guest_is_resident: Type.Optional(Type.Boolean()),
    purpose: Type.Optional(oneOf(purposes)),
    customer_type: Type.Optional(oneOf(customerTypes)),
    property_type: Type.Optional(oneOf(propertyTypes)),
    star_rating: Type.Optional(
      Type.Number({ minimum: 0, maximum: 7, multipleOf: 0.5, description: "0 for none; 4.5 for four stars superior" }),
    ),
    property_rooms: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    nightly_rates: Type.Optional(
      Type.Array(
        named("PriceOfNight", Type.Object({ date: CalendarDate, rate: Amount }), {
          date: "the night",
          rate: "its price for one room",
        }),
        { maxItems: 366 },
      ),
    ),
    price_includes_tax: Type.Optional(Type.Boolean()),
    booking_date: Type.Optional(CalendarDate),
    payment_date: Type.Optional(CalendarDate),
    channel: Type.Optional(oneOf(channels)),
    seller_vat_status: Type.Optional(oneOf(sellerVatStatuses)),
    included_amounts: Type.Optional(
      Type.Object(
        {
          breakfast: Type.Optional(IncludedAmount),
          cleaning: Type.Optional(IncludedAmount),
          service_charge: Type.Optional(IncludedAmount),
        },
        { description: "Parts of the nightly rate that are not the room itself" },
      ),
    ),
    declared_tariff: Type.Optional(AmountAboveZero),
    as_known_at: Type.Optional(CalendarDate),
    require_complete: Type.Optional(
      Type.Boolean({ description: "refuse with 400 where a tax that may exist is unknown or its tariff lapsed" }),
    ),
    accept_assumed: Type.Optional(
      Type.Boolean({
        description:
          "false: as require_complete, and refuse as well what is reported by one source or assumed to go on",
      }),
    ),
    strict: Type.Optional(
      Type.Boolean({
        description: "true: refuse with 422 every field that nobody reads; false names them in the answer",
      }),
    ),
    fx: Type.Optional(
      Type.Union([FxRate, Type.Array(FxRate, { maxItems: 10 })], {
        description: "{rate, source, date, from?}, or several of them",
      }),
    ),
  }),
  {
    jurisdiction_code: "the place, by its code in `/v1/jurisdictions`; or latitude and longitude",
    latitude: "of the property, in degrees",
    longitude: "of the property, in degrees",
    stay_date: "the day of arrival",
    nights: "how many",
    checkout_date: "the day of departure, in agreement with nights",
    nightly_rate: "price of one room and night",
    currency: "of all amounts",
    rooms: "how many; 1 unless given",
    number_of_guests: "in all rooms together; 1 unless given",
    guest_ages: "in years, of as many guests as are known",
    guest_country: "where the guests come from",
    guest_is_resident: "whether the guests live in the place",
    purpose: "why the guests travel",
    customer_type: "who pays",
    property_type: "what kind of house it is",
    star_rating: "the official stars",
    property_rooms: "rooms of the house",
    nightly_rates: "nights whose price is another than nightly_rate",
    price_includes_tax: "whether prices are what the guest pays in the end; false unless given",
    booking_date: "the day of the booking, for laws that ask",
    payment_date: "the day of the payment, for laws that ask",
    channel: "by whom the stay is sold",
    seller_vat_status:
      "`small_business`: the seller is let off VAT by its size; `registered` unless given, or as a booking's issuer is",
    declared_tariff: "the room rate on display, for laws that tax by it",
    as_known_at: "calculate by the laws that were known on that day",
  },
);
export type CalculationRequest = Static<typeof CalculationRequest>;

export type ProblemKind =
  | "invalid"
  | "unknown_jurisdiction"
  | "missing_coordinates"
  | "currency_mismatch"
  | "incomplete";

/** Why there is no answer. `invalid` has the field at fault and is a 422, the others are 400. */
export class CalculationProblem extends Error {
  readonly kind: ProblemKind;
  readonly field: string | undefined;
  /** What the answer says beside the sentence. */
  readonly beside: Readonly<Record<string, unknown>> | undefined;

  constructor(kind: ProblemKind, message: string, field?: string, beside?: Readonly<Record<string, unknown>>) {
    super(message);
    this.name = "CalculationProblem";
    this.kind = kind;
    this.field = field;
    this.beside = beside;
  }
}

/** One guest's age, or undefined for one of whom only "adult" is known. */
export type GuestAge = number | undefined;

/** A stay with nothing left open but the facts that have no default. */
export interface Stay {
  /** The day of calculation. */
  today: string;
  checkin: string;
  checkout: string;
  nights: number;
  /** Date of each night. */
  dates: readonly string[];
  rooms: number;
  ages: readonly GuestAge[];
  adults: number;
  guestCountry: string | undefined;
  isResident: boolean;
  purpose: (typeof purposes)[number];
  customerType: (typeof customerTypes)[number];
  propertyType: (typeof propertyTypes)[number];
  stars: number | undefined;
  propertyRooms: number | undefined;
  channel: (typeof channels)[number];
  sellerVatStatus: (typeof sellerVatStatuses)[number];
  bookingDate: string;
  paymentDate: string;
  currency: string;
  /** One room's price by night, as asked. */
  prices: readonly Rational[];
  priceIncludesTax: boolean;
  /** Parts of each night's price; `unknown` where included without an amount. */
  included: Readonly<Record<"breakfast" | "cleaning" | "service_charge", Rational | "unknown" | undefined>>;
  declaredTariff: Rational | undefined;
  asKnownAt: string | undefined;
  /** From a tax's currency to the stay's; undefined where the request gives no rate. */
  exchangeFrom(currency: string): Exchange | undefined;
}

/** Units of the stay's currency for one unit of another, and who says so of which day. */
export interface Exchange {
  rate: Rational;
  source: string;
  date: string;
}

/** Who is this old is an adult, as `adults` counts them. Whom a tax lets off is for its own ages to say. */
const adultAgeMin = 18;
/** An adult of unknown age counts as this old. */
export const adultAge = 30;

/** @throws CalculationProblem invalid */
export function stayFrom(request: CalculationRequest, today: string): Stay {
  const { stay_date: checkin, nights, currency } = request;
  requireDays(request);
  const checkout = addDays(checkin, nights);
  if (request.checkout_date !== undefined && request.checkout_date !== checkout) {
    refuse("checkout_date", `Expected stay_date plus nights, ${checkout}`);
  }
  if (!isCurrency(currency)) refuse("currency", `Expected an ISO 4217 code, got ${currency}`);
  const ages = agesOf(request);
  const bookingDate = request.booking_date ?? (today < checkin ? today : checkin);
  const dates = Array.from({ length: nights }, (_, index) => addDays(checkin, index));
  const nightlyRate = amountOf("nightly_rate", request.nightly_rate);
  const rates = new Map<string, Rational>();
  for (const [index, { date, rate }] of (request.nightly_rates ?? []).entries()) {
    if (!dates.includes(date)) refuse("nightly_rates", `Expected nights of the stay, got ${date}`);
    if (rates.has(date)) refuse("nightly_rates", `Expected each night once, got ${date} again`);
    rates.set(date, amountOf(`nightly_rates.${index}.rate`, rate));
  }
  const { breakfast, cleaning, service_charge } = request.included_amounts ?? {};
  const included = (part: string, value: string | number | boolean | undefined) =>
    value === undefined || value === false
      ? undefined
      : value === true
        ? "unknown"
        : amountOf(`included_amounts.${part}`, value);
  const fx = fxOf(request);
  return {
    today,
    checkin,
    checkout,
    nights,
    dates,
    rooms: request.rooms ?? 1,
    ages,
    adults: request.adults ?? (ages.filter((age) => (age ?? adultAge) >= adultAgeMin).length || ages.length),
    guestCountry: request.guest_country,
    isResident: request.guest_is_resident ?? false,
    purpose: request.purpose ?? "leisure",
    customerType: request.customer_type ?? "consumer",
    propertyType: request.property_type ?? "hotel",
    stars: request.star_rating,
    propertyRooms: request.property_rooms,
    channel: request.channel ?? "direct",
    sellerVatStatus: request.seller_vat_status ?? "registered",
    bookingDate,
    paymentDate: request.payment_date ?? bookingDate,
    currency,
    prices: dates.map((date) => rates.get(date) ?? nightlyRate),
    priceIncludesTax: request.price_includes_tax ?? false,
    included: {
      breakfast: included("breakfast", breakfast),
      cleaning: included("cleaning", cleaning),
      service_charge: included("service_charge", service_charge),
    },
    declaredTariff:
      request.declared_tariff === undefined ? undefined : amountOf("declared_tariff", request.declared_tariff),
    asKnownAt: request.as_known_at,
    exchangeFrom: (from) => {
      const given = fx.find((one) => one.from === from) ?? fx.find((one) => one.from === undefined);
      return given && { ...given, rate: Rational.parse(given.rate) };
    },
  };
}

/** Days on which anybody's stay is taxed: what lies outside is a slip of the hand. */
const firstDay = "1900-01-01";
const lastDay = "2199-12-31";

/** @throws CalculationProblem invalid for a date of the stay that is no such day */
export function requireDays(request: Partial<CalculationRequest>): void {
  for (const field of ["stay_date", "checkout_date", "booking_date", "payment_date", "as_known_at"] as const) {
    const date = request[field];
    if (date !== undefined) requireDay(field, date);
  }
}

function requireDay(field: string, date: string): void {
  if (isCalendarDate(date) && date >= firstDay && date <= lastDay) return;
  refuse(field, `Expected a day of the calendar from ${firstDay} to ${lastDay}, got ${date}`);
}

/** An amount as it was written, within the bounds of all amounts. @throws CalculationProblem invalid */
function amountOf(field: string, value: string | number): Rational {
  const amount = Rational.parse(value);
  if (amount.compare(amountEnd) >= 0) refuse(field, `Expected less than 10^${amountDigitsMax}`);
  if (finestAmount % amount.d !== 0n) refuse(field, `Expected at most ${decimalPlacesMax} decimal places`);
  return amount;
}

const amountEnd = Rational.of(10n ** BigInt(amountDigitsMax));
const finestAmount = 10n ** BigInt(decimalPlacesMax);

/** The rates of exchange. @throws CalculationProblem invalid */
function fxOf({ fx }: CalculationRequest): Static<typeof FxRate>[] {
  const rates = [fx ?? []].flat();
  for (const [index, { from, rate, date }] of rates.entries()) {
    const at = Array.isArray(fx) ? `fx.${index}` : "fx";
    if (from !== undefined && !isCurrency(from)) refuse(`${at}.from`, `Expected an ISO 4217 code, got ${from}`);
    amountOf(`${at}.rate`, rate);
    requireDay(`${at}.date`, date);
  }
  return rates;
}

function agesOf({ guest_ages, number_of_guests, adults }: CalculationRequest): GuestAge[] {
  const count = number_of_guests ?? guest_ages?.length ?? adults ?? 1;
  if (guest_ages && guest_ages.length !== count) {
    refuse("guest_ages", `Expected one age for each of ${count} guests, got ${guest_ages.length}`);
  }
  const adultAges = guest_ages?.filter((age) => age >= adultAgeMin).length;
  if (adults !== undefined && adultAges !== undefined && adults !== adultAges) {
    refuse("adults", `Expected the number of guest_ages of at least ${adultAgeMin}, ${adultAges}`);
  }
  if (adults !== undefined && adults > count) refuse("adults", `Expected at most number_of_guests, ${count}`);
  if (count === 0) refuse("guest_ages", "Expected at least one guest");
  return guest_ages ?? Array.from({ length: count }, () => undefined);
}

function refuse(field: string, message: string): never {
  throw new CalculationProblem("invalid", message, field);
}
