/** The places that the service knows: `GET /v1/jurisdictions`, filtered, searched and paged. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { nullableText } from "#http/timestamp.ts";
import { coverageStatus, coverageStatuses, slotReports } from "../calculator/completeness.ts";
import { isWithin } from "../calculator/law/calendar.ts";
import type { PlaceRules, Ruleset } from "../rules/ruleset.ts";
import { type Jurisdiction, jurisdictionStatuses, jurisdictionTypes } from "./jurisdiction.ts";

const JurisdictionReply = named(
  "Jurisdiction",
  Type.Object({
    code: Type.String(),
    name: Type.String({ description: "in English" }),
    local_name: nullableText,
    country: Type.String(),
    type: oneOf(jurisdictionTypes),
    status: oneOf(jurisdictionStatuses),
    parent: nullableText,
    coverage: oneOf(coverageStatuses),
  }),
  {
    code: "names it in every other endpoint",
    local_name: "in its own language; null where that is the English one",
    country: "ISO 3166-1 alpha-2",
    type: "what kind of place it is",
    status: "whether it can be calculated for",
    parent: "code of the place that it lies in; null of countries",
    coverage: "how much of the law is known here",
  },
);
type JurisdictionReply = Static<typeof JurisdictionReply>;

/** Wider before narrower. */
const width = new Map(jurisdictionTypes.map((type, index) => [type, index]));

export interface JurisdictionDeps<Caller> {
  ruleset: Ruleset;
  guard: Guard<Caller>;
  now(): Date;
}

export function jurisdictionRoutes<Caller>({ ruleset, guard, now }: JurisdictionDeps<Caller>): Route[] {
  const listed = createListing(ruleset);
  const code = (description: string) => Type.Optional(Type.String({ minLength: 2, maxLength: 40, description }));
  return [
    route({
      method: "GET",
      path: "/v1/jurisdictions",
      summary: "List places; X-Total-Count says how many fit. With q the best match comes first",
      guard,
      query: {
        country: code("an ISO 3166-1 alpha-2 code"),
        type: Type.Optional({ ...oneOf(jurisdictionTypes), about: "places of this kind" }),
        status: Type.Optional({ ...oneOf(jurisdictionStatuses), about: "places of this status" }),
        parent: code("the code of the place directly above"),
        q: Type.Optional(
          Type.String({ maxLength: 200, description: "a part of the name, in English or the local one" }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "default 100" })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, about: "how many are passed over" })),
      },
      reply: { status: 200, body: named("Jurisdictions", Type.Array(JurisdictionReply)) },
      examples: {
        by_name: { query: { q: "rome", limit: 5 } },
        german_cities: { query: { country: "DE", type: "city", limit: 20, offset: 0 } },
        in_new_york_state: { query: { parent: "US-NY", status: "active" } },
        rome: {
          query: { q: "rome", type: "city" },
          answer: [
            {
              code: "IT-RM-ROM",
              name: "Rome",
              local_name: "Roma",
              country: "IT",
              type: "city",
              status: "active",
              parent: "IT-RM",
              coverage: "partial",
            },
          ],
        },
      },
      handle: async ({ query }) => {
        const today = now().toISOString().slice(0, 10);
        const { limit = 100, offset = 0 } = query;
        const found = search(listed(today), query);
        const page = found.slice(offset, offset + limit).map(({ reply }) => reply);
        return Response.json(page, { headers: { "x-total-count": String(found.length) } });
      },
    }),
  ];
}

/** A place as it is answered, and what a search compares. */
export interface Listed {
  reply: JurisdictionReply;
  names: readonly string[];
  hasRules: boolean;
}

/** All places by code, as they stand on a day; computed once a day. */
function createListing(ruleset: Ruleset): (today: string) => readonly Listed[] {
  let day = "";
  let listed: readonly Listed[] = [];
  return (today) => {
    if (day !== today) {
      listed = [...ruleset.places.values()]
        .map((place) => listedFrom(place, ruleset.rulesIn(place.code), today))
        .sort((a, b) => Number(hasParent(a)) - Number(hasParent(b)) || compare(a.reply.code, b.reply.code));
      day = today;
    }
    return listed;
  };
}

const hasParent = ({ reply }: Listed) => reply.parent !== null;

function listedFrom(place: Jurisdiction, rules: PlaceRules | undefined, today: string): Listed {
  const coverage = coverageOn(rules, today);
  return {
    reply: {
      code: place.code,
      name: place.name,
      local_name: place.localName ?? null,
      country: place.country,
      type: place.type,
      status: place.status ?? statusOn(place, rules, coverage, today),
      parent: place.parent ?? null,
      coverage,
    },
    names: [...new Set([place.name, place.localName ?? place.name, ...place.aliases].map(folded))],
    hasRules: rules?.rules.some((rule) => rule.jurisdiction === place.code) ?? false,
  };
}

/** Whether the place's own taxes on stays are in force, still to come, resting, or over; active without any. */
function statusOn(
  { code }: Jurisdiction,
  place: PlaceRules | undefined,
  coverage: JurisdictionReply["coverage"],
  today: string,
): JurisdictionReply["status"] {
  if (coverage === "no_tax") return "no_tax";
  const own = (place?.rules ?? []).filter(
    ({ jurisdiction, kind }) => jurisdiction === code && kind === "accommodation",
  );
  const versions = own.flatMap((rule) => rule.versions);
  if (versions.length === 0 || versions.some((version) => isWithin(today, version))) return "active";
  const hasBegun = versions.some(({ from }) => from <= today);
  if (versions.some(({ from }) => from > today)) return hasBegun ? "suspended" : "announced";
  // Where our knowledge is partial, what ended may be no more than what we know.
  return coverage === "partial" ? "active" : "retired";
}

/** What an ordinary stay of that night would be answered as its coverage. */
function coverageOn(place: PlaceRules | undefined, today: string): JurisdictionReply["coverage"] {
  if (!place) return "none_known";
  const slots = slotReports(place, { today, dates: [today], asKnownAt: undefined });
  return coverageStatus(place, slots, [today]);
}

export interface Search {
  country?: string;
  type?: string;
  status?: string;
  parent?: string;
  q?: string;
}

/**
 * The places that fit, countries first, by code; with `q` the best first: exact name, then prefix, then a part;
 * then places with rules of their own, then the wider ones. Case and accents are ignored.
 */
export function search(places: readonly Listed[], { country, type, status, parent, q }: Search): Listed[] {
  const fits = ({ reply }: Listed) =>
    (country === undefined || reply.country === country.toUpperCase()) &&
    (type === undefined || reply.type === type) &&
    (status === undefined || reply.status === status) &&
    (parent === undefined || reply.parent === parent.toUpperCase());
  const chosen = places.filter(fits);
  const wanted = folded(q ?? "");
  if (wanted === "") return chosen;
  return chosen
    .flatMap((place) => {
      const rank = Math.min(...place.names.map((name) => rankOf(name, wanted)));
      return Number.isFinite(rank) ? [{ place, rank }] : [];
    })
    .sort(
      (a, b) =>
        a.rank - b.rank ||
        Number(b.place.hasRules) - Number(a.place.hasRules) ||
        (width.get(a.place.reply.type) ?? 0) - (width.get(b.place.reply.type) ?? 0) ||
        compare(a.place.reply.code, b.place.reply.code),
    )
    .map(({ place }) => place);
}

function rankOf(name: string, wanted: string): number {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  return name.includes(wanted) ? 2 : Number.POSITIVE_INFINITY;
}

/** Letters without case and accents; ß and its like by their usual spelling. */
export function folded(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replaceAll("ø", "o")
    .replaceAll("ł", "l")
    .replaceAll("æ", "ae")
    .replaceAll("œ", "oe")
    .replaceAll("đ", "d")
    .replaceAll("ı", "i")
    .replace(/\p{Pd}/gu, "-")
    .replace(/[ʻʼ‘’]/g, "'")
    .replace(/\s+/g, " ")
    .trim();
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
