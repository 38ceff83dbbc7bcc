/** Whether a ceiling of today is reached, for whoever would begin or goes on with a call or a run. */
import { ApiError } from "#contracts/errors.ts";
import type { AnySql } from "#store/sql.ts";
import { dayEnd, dayOf, type SubjectKind } from "./day.ts";

/** `finish`: what is under way goes on to its end. `end`: it ends when it is next looked at. */
export const atLimits = ["finish", "end"] as const;

export interface ReachedLimit {
  organization_id: string;
  kind: SubjectKind;
  subject_id: string;
  minutes_per_day: number | null;
  cost_per_day: number | null;
  at_limit: (typeof atLimits)[number];
  call_ms: number;
  cost: number;
}

/** Ceilings of these organizations that are reached today. */
export async function reachedLimits(
  sql: AnySql,
  organizationIds: readonly string[],
  now: Date,
): Promise<ReachedLimit[]> {
  if (organizationIds.length === 0) return [];
  return sql<ReachedLimit[]>`
    select usage_limit.organization_id, usage_limit.kind, usage_limit.subject_id, minutes_per_day::float8,
           cost_per_day::float8, at_limit, call_ms::float8, cost::float8
    from usage_limit join usage_day using (organization_id, subject_id)
    where organization_id = any (${[...organizationIds]}::uuid[]) and day = ${dayOf(now)}::date
      and (call_ms >= minutes_per_day * 60000 or cost >= cost_per_day)
    order by organization_id, subject_id`;
}

/** Who would use something. */
export interface UsageSubject {
  organizationId: string;
  /** A voice agent or an app; none of a draft session. */
  subjectId?: string | undefined;
}

const concerns = ({ kind, subject_id }: ReachedLimit, subjectId: string | undefined) =>
  kind === "organization" || subject_id === subjectId;

/** The ceiling that stands in the way, if one does. */
export async function reachedLimit(
  sql: AnySql,
  { organizationId, subjectId }: UsageSubject,
  now: Date,
): Promise<ReachedLimit | undefined> {
  return (await reachedLimits(sql, [organizationId], now)).find((limit) => concerns(limit, subjectId));
}

/** @throws ApiError usage_limit when a ceiling of today is reached; until the next day begins */
export async function requireUnderLimit(sql: AnySql, subject: UsageSubject, now: Date): Promise<void> {
  const limit = await reachedLimit(sql, subject, now);
  if (limit) throw limitError(limit, now);
}

export function limitError(limit: ReachedLimit, now: Date): ApiError {
  const field = { organization: "organization", agent: "agent_id", app: "app_id" }[limit.kind];
  const details = {
    [field]: `Expected to stay below ${limitWords(limit)} a day: today's are used, until midnight UTC`,
  };
  return new ApiError("usage_limit", {
    details,
    retryAfterS: Math.ceil((dayEnd(now).getTime() - now.getTime()) / 1000),
  });
}

/** "60 minutes of calls", "a cost of 25" */
export function limitWords({ minutes_per_day, cost_per_day, call_ms }: ReachedLimit): string {
  const isByMinutes = minutes_per_day !== null && call_ms >= minutes_per_day * 60_000;
  return isByMinutes ? `${minutes_per_day} minutes of calls` : `a cost of ${cost_per_day}`;
}

/** Of things under way, those that a reached ceiling ends. */
export async function endedByLimit<Subject extends UsageSubject>(
  sql: AnySql,
  subjects: readonly Subject[],
  now: Date,
): Promise<Subject[]> {
  const organizations = [...new Set(subjects.map(({ organizationId }) => organizationId))];
  const ending = (await reachedLimits(sql, organizations, now)).filter(({ at_limit }) => at_limit === "end");
  return subjects.filter(({ organizationId, subjectId }) =>
    ending.some((limit) => limit.organization_id === organizationId && concerns(limit, subjectId)),
  );
}
