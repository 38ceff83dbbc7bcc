/**
 * `GET /v1/law-changes`: every day on which a tax begins, changes, ends or runs out, or on which somebody
 * has to look again; past and announced, with what held before and what after.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { nullableText } from "#http/timestamp.ts";
import { invalidRequest } from "#http/validation.ts";
import { tariffText } from "../calculator/explanation.ts";
import { ruleKinds } from "../rules/rule.ts";
import { isCalendarDate, type KnownRule, type KnownVersion, type Ruleset } from "../rules/ruleset.ts";

const events = ["start", "new_rate", "end", "lapse", "assumed", "review"] as const;

const LawChange = named(
  "LawChange",
  Type.Object({
    date: Type.String({ description: "the first day of what comes after" }),
    /** end: the tax stops; lapse: its tariff ran out and is not counted; assumed: it ran out and is taken to go on. */
    event: oneOf(events),
    rule_id: Type.String(),
    version: Type.Integer(),
    name: Type.String(),
    kind: oneOf(ruleKinds),
    authority: Type.String(),
    jurisdiction_code: Type.String(),
    jurisdiction_name: Type.String(),
    country: Type.String(),
    before: nullableText,
    after: nullableText,
    announced_on: nullableText,
    read_on: Type.String({ description: "when we read it: what since asks for" }),
    source: named("LawReference", Type.Object({ title: Type.String(), url: Type.String() }), {
      title: "what it is called",
      url: "where it is read",
    }),
  }),
  {
    event: "what changes",
    rule_id: "the rule that changes",
    version: "its version from then on",
    name: "what the tax is called",
    kind: "what kind of tax",
    authority: "who levies it",
    jurisdiction_code: "the place that levies it",
    jurisdiction_name: "that place's name",
    country: "ISO 3166-1 alpha-2",
    before: "the rate until then; null where there was none",
    after: "the rate from then on; null where there is none",
    announced_on: "the day on which it was made known; null where that is not recorded",
    source: "where the law is read",
  },
);
export type LawChange = Static<typeof LawChange>;

const LawChanges = named("LawChanges", Type.Object({ total: Type.Integer(), items: Type.Array(LawChange) }), {
  total: "on all pages together",
  items: "by date",
});

const date = (description: string) => Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description }));
const code = (description: string) => Type.Optional(Type.String({ minLength: 2, maxLength: 40, description }));

export function lawChangeRoutes<Caller>({ ruleset, guard }: { ruleset: Ruleset; guard: Guard<Caller> }): Route[] {
  let all: readonly LawChange[] | undefined;
  return [
    route({
      method: "GET",
      path: "/v1/law-changes",
      summary: "What begins, changes, ends or runs out, in order of days",
      guard,
      query: {
        from: date("a date as YYYY-MM-DD: the first day"),
        to: date("a date as YYYY-MM-DD: the last day"),
        since: date("a date as YYYY-MM-DD: what was read on that day or later"),
        country: code("an ISO 3166-1 alpha-2 code"),
        jurisdiction: code("the code of a place: its own changes and those of the places above it"),
        event: Type.Optional({ ...oneOf(events), about: "changes of this kind" }),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: "default 100" })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, about: "how many are passed over" })),
      },
      reply: { status: 200, body: LawChanges },
      examples: {
        next_year_in_europe: { query: { from: "2027-01-01", to: "2027-12-31", country: "GB" } },
        what_lapses: { query: { event: "lapse", from: "2026-12-01" } },
        over_one_city: { query: { jurisdiction: "AT-9", from: "2026-01-01" } },
      },
      handle: async ({ query }) => {
        const {
          from = "",
          to = "9999-12-31",
          since = "",
          country,
          jurisdiction,
          event,
          limit = 100,
          offset = 0,
        } = query;
        for (const field of ["from", "to", "since"] as const) {
          const day = query[field];
          if (day !== undefined && !isCalendarDate(day))
            throw invalidRequest("query", field, `Expected a day of the calendar, got ${day}`);
        }
        all ??= lawChanges(ruleset);
        const stack = jurisdiction && ruleset.stackOf(jurisdiction.toUpperCase()).map((place) => place.code);
        const found = all.filter(
          (one) =>
            one.date >= from &&
            one.date <= to &&
            one.read_on >= since &&
            (country === undefined || one.country === country.toUpperCase()) &&
            (!stack || stack.includes(one.jurisdiction_code)) &&
            (event === undefined || one.event === event),
        );
        return { total: found.length, items: found.slice(offset, offset + limit) };
      },
    }),
  ];
}

/** In order of days. */
export function lawChanges({ rules, places }: Pick<Ruleset, "rules" | "places">): LawChange[] {
  const changes = [...rules.values()].flatMap((rule) =>
    rule.versions.flatMap((version, index) =>
      eventsOf(rule, version, index).map(({ date, event, before, after }): LawChange => {
        const { id, name, kind, authority, jurisdiction } = rule;
        return {
          date,
          event,
          rule_id: id,
          version: version.version,
          name,
          kind,
          authority,
          jurisdiction_code: jurisdiction,
          jurisdiction_name: places.get(jurisdiction)?.name ?? jurisdiction,
          country: jurisdiction.slice(0, 2),
          before: before ? tariffText(before) : null,
          after: after ? tariffText(after) : null,
          announced_on: version.announcedOn ?? null,
          read_on: version.source.checked_on,
          source: { title: version.source.title, url: version.source.url },
        };
      }),
    ),
  );
  const order = (one: LawChange) => `${one.date} ${one.jurisdiction_code} ${one.rule_id}`;
  return changes.sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

interface LawEvent {
  date: string;
  event: LawChange["event"];
  before: KnownVersion | undefined;
  after: KnownVersion | undefined;
}

function eventsOf({ versions }: KnownRule, version: KnownVersion, index: number): LawEvent[] {
  const before = versions[index - 1];
  const isFollowed = versions.some(({ from }) => from === version.to);
  const list: LawEvent[] = [
    {
      date: version.from,
      event: before ? "new_rate" : "start",
      before: before?.to === version.from ? before : undefined,
      after: version,
    },
  ];
  if (version.knownUntil !== undefined)
    list.push({ date: version.knownUntil, event: "assumed", before: version, after: version });
  else if (version.to !== undefined && !isFollowed)
    list.push({
      date: version.to,
      event: version.onLapse === "end" ? "end" : "lapse",
      before: version,
      after: undefined,
    });
  const isLast = index === versions.length - 1;
  if (isLast && version.reviewBy !== undefined)
    list.push({ date: version.reviewBy, event: "review", before: version, after: undefined });
  return list;
}
