/** All kinds of records that may be a person's: who keeps a new one joins here. */
import { personalAccounts } from "#accounts/personal_accounts.ts";
import { personalConnectTokens } from "#connections/personal_tokens.ts";
import { personalRuns } from "#runs/personal_runs.ts";
import type { PersonalData } from "#store/personal_data.ts";
import type { Sql } from "#store/sql.ts";
import { personalBookings } from "#tax/personal_bookings.ts";
import { personalTraces } from "#traces/personal_traces.ts";
import type { SpanStore } from "#traces/span_store.ts";
import { personalCalls } from "#voice/personal_calls.ts";

/** In the order in which they are erased: calls start runs, and traces are made of both. */
export function personalData(deps: { sql: Sql; now(): Date; traces: SpanStore }): PersonalData[] {
  const { sql, now, traces } = deps;
  return [
    personalCalls(sql),
    personalRuns(sql, now),
    personalTraces(traces),
    personalConnectTokens(sql),
    ...personalAccounts(sql),
    ...personalBookings,
  ];
}
