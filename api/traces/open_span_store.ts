/** The store that this installation has. */
import type { Sql } from "#store/sql.ts";
import { postgresSpanWriter } from "./postgres_spans.ts";
import { postgresTraceReader } from "./postgres_traces.ts";
import type { SpanStore } from "./span_store.ts";
import { purgeTraces } from "./trace_retention.ts";

export function openSpanStore({ sql, now }: { sql: Sql; now(): Date }): SpanStore {
  return { ...postgresSpanWriter(sql, now), ...postgresTraceReader(sql), purge: () => purgeTraces(sql, now()) };
}
