/**
 * How well a figure is known. A: a primary source, with the words that carry it. B: a primary source
 * without its words, or two secondary ones whose words agree. C: anything less.
 */
import type { Quote, Source } from "./rule.ts";

export type EvidenceClass = "A" | "B" | "C";

const primaryKinds: ReadonlySet<Source["kind"]> = new Set(["law", "official", "official_copy"]);
/** Where no day is known on which the authority may change a tariff. */
const reviewAfterDays = 180;

export function classOf(sources: readonly Source[], quotes: readonly Quote[]): EvidenceClass {
  const quoted = sources.filter(({ id }) => quotes.some(({ source }) => source === id));
  if (quoted.some(({ kind }) => primaryKinds.has(kind))) return "A";
  if (sources.some(({ kind }) => primaryKinds.has(kind))) return "B";
  const publishers = new Set(quoted.map(({ url }) => new URL(url).hostname.replace(/^www\./, "")));
  return publishers.size >= 2 ? "B" : "C";
}

/** The class on a day: what nobody looked at again in time is trusted one class less. */
export function classOn(day: string, evidence: EvidenceClass, reviewBy: string | undefined): EvidenceClass {
  if (reviewBy === undefined || day < reviewBy || evidence === "C") return evidence;
  return evidence === "A" ? "B" : "C";
}

/** The next day, after the latest reading, on which the authority may change the tariff. */
export function reviewDayOf(sources: readonly Source[], tariffDays: readonly string[]): string | undefined {
  const readOn = sources
    .map(({ checked_on }) => checked_on)
    .sort()
    .at(-1);
  if (readOn === undefined) return undefined;
  const year = Number(readOn.slice(0, 4));
  const days = [year, year + 1].flatMap((one) => tariffDays.map((day) => `${one}-${day}`)).sort();
  const next = days.find((day) => day > readOn);
  return next ?? new Date(Date.parse(readOn) + reviewAfterDays * 86_400_000).toISOString().slice(0, 10);
}
