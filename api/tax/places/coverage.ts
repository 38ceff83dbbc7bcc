/**
 * `GET /v1/coverage`: what we know and what we do not, place by place: every tax that the law allows
 * there, its state on a day, and when somebody has to look again. As JSON, or as CSV for a request that
 * accepts `text/csv`.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { invalidRequest } from "#http/validation.ts";
import { SlotReport, slotReports } from "../calculator/completeness.ts";
import { acceptsCsv, csvResponse } from "../liability/csv_response.ts";
import { isCalendarDate, type Ruleset } from "../rules/ruleset.ts";
import { slotKinds, slotLevels, slotStates } from "../rules/slot.ts";

const CoverageItem = named(
  "CoveredTax",
  Type.Object({
    place_code: Type.String(),
    place_name: Type.String(),
    country: Type.String(),
    /** Place among the most visited destinations; null for the others. */
    rank: Type.Unsafe<number | null>({ type: ["integer", "null"] }),
    ...SlotReport.properties,
  }),
  {
    place_code: "the place, by its code",
    place_name: "in English",
    country: "ISO 3166-1 alpha-2",
    rank: "among the most visited destinations; null of the others",
  },
);
type CoverageItem = Static<typeof CoverageItem>;

const Coverage = named(
  "Coverage",
  Type.Object({
    on: Type.String({ description: "the night that is asked about" }),
    total: Type.Integer({ description: "items that fit, on all pages" }),
    states: Type.Record(Type.String(), Type.Integer(), { description: "items that fit, by state" }),
    items: Type.Array(CoverageItem),
  }),
  {
    items: "a page of them",
  },
);

const code = (description: string) => Type.Optional(Type.String({ minLength: 2, maxLength: 40, description }));
const query = {
  country: code("an ISO 3166-1 alpha-2 code"),
  place: code("the code of one place"),
  level: Type.Optional({ ...oneOf(slotLevels), about: "taxes of this level of government" }),
  kind: Type.Optional({ ...oneOf(slotKinds), about: "taxes of this kind" }),
  state: Type.Optional({ ...oneOf(slotStates), about: "taxes that are known so well" }),
  on: Type.Optional(
    Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "a night as YYYY-MM-DD; today's when left out" }),
  ),
  destinations: Type.Optional(Type.Boolean({ description: "true: the most visited destinations alone, by rank" })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "default 100" })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, about: "how many are passed over" })),
};
type Query = Static<ReturnType<typeof Type.Object<typeof query>>>;

export interface CoverageDeps<Caller> {
  ruleset: Ruleset;
  guard: Guard<Caller>;
  now(): Date;
}

export function coverageRoutes<Caller>({ ruleset, guard, now }: CoverageDeps<Caller>): Route[] {
  const matrixOn = createMatrix(ruleset);
  return [
    route({
      method: "GET",
      path: "/v1/coverage",
      summary: "What is known of each tax that each place may have; as CSV for Accept: text/csv",
      guard,
      query,
      reply: { status: 200, body: Coverage },
      examples: {
        what_is_unknown_in_japan: { query: { country: "JP", state: "unknown", limit: 20 } },
        one_city_next_summer: { query: { place: "IT-RM-ROM", on: "2027-07-15" } },
        the_most_visited: { query: { destinations: true, kind: "accommodation" } },
      },
      handle: async ({ query, request }) => {
        const today = now().toISOString().slice(0, 10);
        const { on = today, limit = 100, offset = 0 } = query;
        if (!isCalendarDate(on)) throw invalidRequest("query", "on", `Expected a day of the calendar, got ${on}`);
        const found = chosen(matrixOn(today, on), query);
        const page = found.slice(offset, offset + limit);
        if (acceptsCsv(request)) {
          const rows = page.map(csvRow);
          return csvResponse("coverage.csv", [columns, ...rows], { "x-total-count": String(found.length) });
        }
        const states: Record<string, number> = {};
        for (const { state } of found) states[state] = (states[state] ?? 0) + 1;
        return { on, total: found.length, states, items: page };
      },
    }),
  ];
}

/** All places and slots as they stand on a night; the last few nights asked about are kept. */
function createMatrix(ruleset: Ruleset): (today: string, on: string) => readonly CoverageItem[] {
  const keptMax = 4;
  const kept = new Map<string, readonly CoverageItem[]>();
  return (today, on) => {
    const key = `${today} ${on}`;
    const known = kept.get(key);
    if (known) return known;
    const items = coverageMatrix(ruleset, today, on);
    const [oldest] = kept.keys();
    if (kept.size >= keptMax && oldest !== undefined) kept.delete(oldest);
    kept.set(key, items);
    return items;
  };
}

/** Every place with every tax that the law allows there, on the night `on` as known on `today`. */
export function coverageMatrix(ruleset: Ruleset, today: string, on: string): CoverageItem[] {
  const ranks = new Map(ruleset.destinations.map(({ code }, index) => [code, index + 1]));
  return [...ruleset.places.values()].flatMap(({ code, name, country }) => {
    const rules = ruleset.rulesIn(code);
    if (!rules) return [];
    const rank = ranks.get(code) ?? null;
    const reports = slotReports(rules, { today, dates: [on], asKnownAt: undefined });
    return reports.map((report) => ({ place_code: code, place_name: name, country, rank, ...report }));
  });
}

function chosen(items: readonly CoverageItem[], { country, place, level, kind, state, destinations }: Query) {
  const found = items.filter(
    (item) =>
      (country === undefined || item.country === country.toUpperCase()) &&
      (place === undefined || item.place_code === place.toUpperCase()) &&
      (level === undefined || item.level === level) &&
      (kind === undefined || item.kind === kind) &&
      (state === undefined || item.state === state) &&
      (!destinations || item.rank !== null),
  );
  return destinations ? found.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)) : found;
}

const columns = [
  "place_code",
  "place_name",
  "country",
  "rank",
  "level",
  "kind",
  "jurisdiction_code",
  "jurisdiction_name",
  "state",
  "rule_ids",
  "known_until",
  "review_by",
  "note",
  "source_title",
  "source_url",
  "source_kind",
  "source_checked_on",
] as const;

function csvRow({ source, rule_ids, ...item }: CoverageItem) {
  const cells = {
    ...item,
    rule_ids: rule_ids.join(" "),
    source_title: source?.title ?? null,
    source_url: source?.url ?? null,
    source_kind: source?.kind ?? null,
    source_checked_on: source?.checked_on ?? null,
  };
  return columns.map((column) => cells[column]);
}
