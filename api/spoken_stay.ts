/** Days and numbers as people say them, made into a stay. Pure. */

const numberWords = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen".split(" ");
const weekdays = "sunday monday tuesday wednesday thursday friday saturday".split(" ");
const months = "january february march april may june july august september october november december".split(" ");
const dayMs = 24 * 60 * 60 * 1000;

/** `3`, `three`, `a week`; undefined for anything else. */
export function spokenNumber(given: unknown): number | undefined {
  const text = String(given ?? "")
    .trim()
    .toLowerCase();
  if (/\ba week\b/.test(text)) return 7;
  const digits = /\d+/.exec(text);
  if (digits) return Number(digits[0]);
  const at = text
    .split(/[^a-z]+/)
    .map((word) => numberWords.indexOf(word))
    .find((index) => index >= 0);
  return at ?? (/^(a|an)\b/.test(text) ? 1 : undefined);
}

/** `2026-12-24`, `tomorrow`, `next friday`, `24 December`, `December 24th`: the next such day from `today` on, as YYYY-MM-DD. */
export function spokenDay(given: unknown, today: string): string | undefined {
  const text = String(given ?? "")
    .trim()
    .toLowerCase();
  const written = /\d{4}-\d{2}-\d{2}/.exec(text);
  if (written) return isDay(written[0]) && written[0] >= today ? written[0] : undefined;
  if (/\b(today|tonight)\b/.test(text)) return today;
  if (/\btomorrow\b/.test(text)) return plusDays(today, 1);
  const month = months.findIndex((name) => new RegExp(`\\b${name.slice(0, 3)}`).test(text));
  const day = /\b(\d{1,2})(st|nd|rd|th)?\b/.exec(text);
  if (month >= 0 && day) return nextDay(month + 1, Number(day[1]), today);
  const weekday = weekdays.findIndex((name) => text.includes(name));
  if (weekday < 0) return undefined;
  const ahead = (weekday - new Date(`${today}T00:00:00Z`).getUTCDay() + 7) % 7 || 7;
  return plusDays(today, ahead);
}

export function plusDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);
}

function nextDay(month: number, day: number, today: string): string | undefined {
  const year = Number(today.slice(0, 4));
  const at = (inYear: number) => `${inYear}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`;
  return [at(year), at(year + 1)].find((date) => isDay(date) && date >= today);
}

function isDay(text: string): boolean {
  const atMs = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text);
}
