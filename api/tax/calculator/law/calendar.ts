/** Days as the law counts them: dates without a time or a zone, as YYYY-MM-DD. */
import type { Season } from "../../rules/ruleset.ts";

const dayMs = 86_400_000;

/** Days come again and again: their texts are made once. Those of three centuries at most. */
const texts = new Map<number, string>();
const numbers = new Map<string, number>();
const keptMax = 120_000;

export function addDays(date: string, days: number): string {
  return dayText(dayNumber(date) + days);
}

/** Days since 1970. */
function dayNumber(date: string): number {
  const known = numbers.get(date);
  if (known !== undefined) return known;
  const number = Date.parse(`${date}T00:00:00Z`) / dayMs;
  if (numbers.size < keptMax) numbers.set(date, number);
  return number;
}

function dayText(number: number): string {
  const known = texts.get(number);
  if (known !== undefined) return known;
  const text = new Date(number * dayMs).toISOString().slice(0, 10);
  if (texts.size < keptMax) texts.set(number, text);
  return text;
}

/** The same day of a later month, or that month's last one. */
export function addMonths(date: string, months: number): string {
  const [year, month, day] = date.split("-").map(Number) as [number, number, number];
  const lastDay = new Date(Date.UTC(year, month - 1 + months + 1, 0));
  return new Date(Date.UTC(year, month - 1 + months, Math.min(day, lastDay.getUTCDate()))).toISOString().slice(0, 10);
}

export function weekdayOf(date: string): "sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat" {
  const names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
  // The first day of 1970 was a Thursday.
  return names[(((dayNumber(date) + 4) % 7) + 7) % 7] ?? "sun";
}

export function isInSeason(date: string, season: Season): boolean {
  const day = date.slice(5);
  return season.some(({ from, to }) => (from <= to ? from <= day && day <= to : day >= from || day <= to));
}

/** Whether `date` lies in the range; `from` is inside, `to` is not, and an open end has no end. */
export function isWithin(date: string, range: { from?: string | undefined; to?: string | undefined }): boolean {
  return (range.from === undefined || range.from <= date) && (range.to === undefined || date < range.to);
}
