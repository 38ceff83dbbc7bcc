/** Whether facts of a stay and one of its nights meet a rule's condition. */
import type { Predicate } from "../../rules/rule.ts";
import type { Season } from "../../rules/ruleset.ts";
import type { Stay } from "../calculation_request.ts";
import { Rational } from "../numbers/rational.ts";
import { isInSeason, isWithin, weekdayOf } from "./calendar.ts";

export interface Night {
  /** Counts from 0. */
  index: number;
  date: string;
}

export function holds(
  predicate: Predicate,
  stay: Stay,
  night: Night,
  seasons: Readonly<Record<string, Season>>,
): boolean {
  const p = predicate;
  return (
    (!p.property_type || p.property_type.includes(stay.propertyType)) &&
    (!p.stars || hasStars(stay.stars, p.stars)) &&
    (!p.property_rooms || (stay.propertyRooms !== undefined && isBetween(stay.propertyRooms, p.property_rooms))) &&
    (!p.guest_country || (stay.guestCountry !== undefined && p.guest_country.includes(stay.guestCountry))) &&
    (p.resident === undefined || p.resident === stay.isResident) &&
    (!p.purpose || p.purpose.includes(stay.purpose)) &&
    (!p.customer_type || p.customer_type.includes(stay.customerType)) &&
    (!p.channel || p.channel.includes(stay.channel)) &&
    (!p.seller_vat_status || p.seller_vat_status.includes(stay.sellerVatStatus)) &&
    (!p.season || isInSeason(night.date, seasons[p.season] ?? [])) &&
    (!p.weekday || p.weekday.includes(weekdayOf(night.date))) &&
    (!p.night_number || isBetween(night.index + 1, p.night_number)) &&
    (!p.nights || isBetween(stay.nights, p.nights)) &&
    (!p.guests || isBetween(stay.ages.length, p.guests)) &&
    (!p.rooms || isBetween(stay.rooms, p.rooms)) &&
    (!p.room_price || isPriced(stay.prices[night.index] ?? Rational.zero, p.room_price)) &&
    (!p.booked || isWithin(stay.bookingDate, p.booked)) &&
    (!p.paid || isWithin(stay.paymentDate, p.paid)) &&
    (!p.any || p.any.some((one) => holds(one, stay, night, seasons))) &&
    (!p.not || !holds(p.not, stay, night, seasons))
  );
}

/** 4 stands for 4 and 4.5 (superior), 4.5 for itself alone. */
function hasStars(stars: number | undefined, wanted: readonly number[]): boolean {
  return stars !== undefined && (wanted.includes(stars) || wanted.includes(Math.floor(stars)));
}

function isBetween(value: number, { min, max }: { min?: number; max?: number }): boolean {
  return (min === undefined || value >= min) && (max === undefined || value <= max);
}

function isPriced(price: Rational, { min, below }: { min?: string; below?: string }): boolean {
  return (
    (min === undefined || price.compare(Rational.parse(min)) >= 0) &&
    (below === undefined || price.compare(Rational.parse(below)) < 0)
  );
}
