/** What the organization used each day, and the ceilings of that; for administrators. */
import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, requireAdministrator } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import { type AnySql, oneRow } from "#store/sql.ts";
import { type SubjectKind, subjectKinds } from "./day.ts";
import { atLimits } from "./limits.ts";

const uuid = Type.String({ format: "uuid" });
const day = Type.String({ pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description: "a day such as 2026-11-22, of UTC" });
const subject = {
  kind: { ...oneOf(subjectKinds), about: "whose it is: the whole organization's, a voice agent's or an app's" },
  agent_id: nullableText,
  app_id: nullableText,
};
const subjectWords = { agent_id: "the voice agent; null otherwise", app_id: "the app; null otherwise" };

const UsageDay = named(
  "UsageDay",
  Type.Object({
    id: uuid,
    day,
    ...subject,
    call_minutes: Type.Number(),
    cost: Type.Number(),
    currency: Type.String(),
    has_unknown_cost: Type.Boolean(),
  }),
  {
    ...subjectWords,
    day: "of UTC",
    call_minutes: "how long its calls were",
    cost: "what models cost in its calls and runs, as far as a price is known",
    currency: "of the cost: an ISO 4217 code",
    has_unknown_cost: "true: something was used that has no price, which is not in the cost",
  },
);

const positive = (about: string) =>
  Type.Optional(
    Type.Union([Type.Number({ minimum: 0, maximum: 1_000_000_000 }), Type.Null()], {
      description: "a number from 0 on, or null for none",
      about,
    }),
  );
const ceilings = {
  minutes_per_day: positive("minutes of calls"),
  cost_per_day: positive("what models may cost, in the currency of the price table"),
};
const atLimit = {
  ...oneOf(atLimits),
  about: "what becomes of calls and runs under way: they `finish`, or a farewell and an error `end` them",
};

const UsageLimit = named(
  "UsageLimit",
  Type.Object({ id: uuid, ...subject, ...ceilings, at_limit: atLimit, created_at: Timestamp, updated_at: Timestamp }),
  subjectWords,
);
type UsageLimit = Static<typeof UsageLimit>;

const NewUsageLimit = named(
  "NewUsageLimit",
  Type.Object(
    {
      agent_id: Type.Optional({ ...uuid, about: "of this voice agent" }),
      app_id: Type.Optional({ ...uuid, about: "of this app" }),
      ...ceilings,
      at_limit: Type.Optional({ ...atLimit, default: "finish" }),
    },
    { additionalProperties: false, description: "Of the whole organization without `agent_id` and `app_id`" },
  ),
);

/** Of a table with `kind` and `subject_id`. */
const subjectColumns = (sql: AnySql) => sql`
  id, kind, case when kind = 'agent' then subject_id end as agent_id, case when kind = 'app' then subject_id end as app_id`;
const limitColumns = (sql: AnySql) => sql`
  ${subjectColumns(sql)}, minutes_per_day::float8, cost_per_day::float8, at_limit, created_at, updated_at`;

const computed = (sql: AnySql) => ({
  agent_id: sql`case when kind = 'agent' then subject_id end`,
  app_id: sql`case when kind = 'app' then subject_id end`,
  day: sql`day::text`,
});

export interface UsageDeps extends ApiDeps {
  /** Of the price table. */
  currency: string;
}

export function usageRoutes({ sql, now, personalAccessToken: guard, currency }: UsageDeps): Route[] {
  const limits = "/v1/usage/limits";
  return [
    listRoute(sql, {
      path: "/v1/usage",
      summary: "List what was used each day, newest first; for administrators",
      guard,
      row: UsageDay,
      filters: {
        day: { ...day, about: "of one day" },
        kind: { ...oneOf(subjectKinds), about: "sums of this kind alone" },
        agent_id: { ...uuid, about: "of one voice agent" },
        app_id: { ...uuid, about: "of one app" },
      },
      sort: ["day"],
      order: [{ column: "day", descending: true }],
      examples: { the_organization: { query: { kind: "organization", sort: "-day" } } },
      rows: ({ principal }) => {
        requireAdministrator(principal);
        return {
          columns: sql`${subjectColumns(sql)}, day::text as day, round(call_ms / 60000.0, 3)::float8 as call_minutes,
            cost::float8, ${currency}::text as currency, has_unknown_cost`,
          from: sql`usage_day`,
          where: sql`organization_id = ${principal.organizationId}`,
          computed: computed(sql),
        };
      },
    }),
    listRoute(sql, {
      path: limits,
      summary: "List the ceilings of a day; for administrators",
      guard,
      row: UsageLimit,
      filters: { agent_id: { ...uuid, about: "of one voice agent" }, app_id: { ...uuid, about: "of one app" } },
      sort: ["created_at"],
      examples: { newest_first: { query: { sort: "-created_at" } } },
      rows: ({ principal }) => {
        requireAdministrator(principal);
        return {
          columns: limitColumns(sql),
          from: sql`usage_limit`,
          where: sql`organization_id = ${principal.organizationId}`,
          computed: computed(sql),
        };
      },
    }),
    route({
      method: "PUT",
      path: limits,
      summary: "Set the ceiling of a day, of the organization, of a voice agent or of an app; for administrators",
      guard,
      body: NewUsageLimit,
      reply: { status: 200, body: dataOf(UsageLimit) },
      errors: ["forbidden", "not_found"],
      examples: { an_hour_and_ten_dollars: { body: { minutes_per_day: 60, cost_per_day: 10, at_limit: "end" } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        const { kind, subjectId } = await subjectOf(sql, principal, body);
        const { minutes_per_day = null, cost_per_day = null, at_limit = "finish" } = body;
        if (minutes_per_day === null && cost_per_day === null) {
          throw new ApiError("bad_request", { details: { minutes_per_day: "Expected it, or cost_per_day, or both" } });
        }
        const at = now();
        return {
          data: oneRow(
            await sql<UsageLimit[]>`
              insert into usage_limit
                (id, organization_id, kind, subject_id, minutes_per_day, cost_per_day, at_limit, created_at, updated_at, updated_by)
              values (${crypto.randomUUID()}, ${principal.organizationId}, ${kind}, ${subjectId}, ${minutes_per_day},
                      ${cost_per_day}, ${at_limit}, ${at}, ${at}, ${principal.userId})
              on conflict on constraint usage_limit_subject_key do update
              set minutes_per_day = excluded.minutes_per_day, cost_per_day = excluded.cost_per_day,
                  at_limit = excluded.at_limit, updated_at = excluded.updated_at, updated_by = excluded.updated_by
              returning ${limitColumns(sql)}`,
          ),
        };
      },
    }),
    route({
      method: "DELETE",
      path: `${limits}/{limit_id}`,
      summary: "Take a ceiling away; for administrators",
      guard,
      reply: { status: 200, body: dataOf(UsageLimit) },
      errors: ["forbidden"],
      paramsFrom: { limit_id: { route: `PUT ${limits}`, field: "data.id" } },
      examples: { a_ceiling: {} },
      handle: async ({ principal, params }) => {
        requireAdministrator(principal);
        const [limit] = await sql<UsageLimit[]>`
          delete from usage_limit where id = ${params.limit_id} and organization_id = ${principal.organizationId}
          returning ${limitColumns(sql)}`;
        if (!limit) throw new ApiError("not_found");
        return { data: limit };
      },
    }),
  ];
}

/** @throws ApiError bad_request for two at once, not_found for what is not the organization's */
async function subjectOf(
  sql: AnySql,
  { organizationId }: Caller,
  { agent_id, app_id }: { agent_id?: string; app_id?: string },
): Promise<{ kind: SubjectKind; subjectId: string }> {
  if (agent_id !== undefined && app_id !== undefined) {
    throw new ApiError("bad_request", { details: { app_id: "Expected either agent_id or app_id, not both" } });
  }
  const subjectId = agent_id ?? app_id;
  if (subjectId === undefined) return { kind: "organization", subjectId: organizationId };
  const found =
    agent_id === undefined
      ? await sql`select 1 from app where id = ${subjectId} and organization_id = ${organizationId}`
      : await sql`select 1 from voice_agent where id = ${subjectId} and organization_id = ${organizationId}`;
  if (found.length === 0) throw new ApiError("not_found");
  return { kind: agent_id === undefined ? "app" : "agent", subjectId };
}
