/** Days as the law counts them: dates without a time or a zone, as YYYY-MM-DD. */
import type { Season } from "../rules/ruleset.ts";

const dayMs = 86_400_000;

export function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);
}

/** The same day of a later month, or that month's last one. */
export function addMonths(date: string, months: number): string {
  const [year, month, day] = date.split("-").map(Number) as [number, number, number];
  const lastDay = new Date(Date.UTC(year, month - 1 + months + 1, 0));
  return new Date(Date.UTC(year, month - 1 + months, Math.min(day, lastDay.getUTCDate()))).toISOString().slice(0, 10);
}

export function weekdayOf(date: string): "sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat" {
  const names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
  return names[new Date(`${date}T00:00:00Z`).getUTCDay()] ?? "sun";
}

export function isInSeason(date: string, season: Season): boolean {
  const day = date.slice(5);
  return season.some(({ from, to }) => (from <= to ? from <= day && day <= to : day >= from || day <= to));
}

/** Whether `date` lies in the range; `from` is inside, `to` is not, and an open end has no end. */
export function isWithin(date: string, range: { from?: string | undefined; to?: string | undefined }): boolean {
  return (range.from === undefined || range.from <= date) && (range.to === undefined || date < range.to);
}
