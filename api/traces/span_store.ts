/**
 * Where traces are kept: the one door for all who write and read them. Postgres stands behind it
 * (`postgres_spans.ts`); `span_store_contract.test.ts` says what another store would have to do.
 */
import type { SortKey } from "#http/paging.ts";
import type { TimeBound } from "#http/time_range.ts";
import type { Span, Trace, TraceHead, TraceSpans, TraceStatus } from "./span.ts";

/** Which traces; what is absent is not asked for. */
export interface TraceFilter {
  projectId: string;
  appId?: string;
  startedAt?: readonly TimeBound[];
  status?: TraceStatus;
  sessionId?: string;
  userId?: string;
  model?: string;
}

export type TraceSort = "started_at" | "ended_at" | "status" | "id";

export interface Listed<Row> {
  rows: Row[];
  /** Exact up to `countedMax`, above that one more than it. */
  totalCount: number;
}

/** Lists count so far and no further. */
export const countedMax = 10_000;

export interface TraceSession {
  id: string;
  created_at: Date;
  last_trace_at: Date;
  trace_count: number;
  /** Of its first trace. */
  input: unknown;
}

export interface ListPage {
  pageSize: number;
  offset: number;
}

export interface SpanStore {
  /**
   * Writes spans that others made. Durable when it returns; a span that is there already stays as it is and
   * counts for nothing.
   * @returns how many were new
   */
  writeSpans(batch: readonly TraceSpans[]): Promise<number>;
  /**
   * Writes whole traces of ours: what was written of them before is replaced, spans that others added stay.
   * Each has exactly one span without a parent among the given ones.
   */
  rewriteTraces(batch: readonly TraceSpans[]): Promise<void>;
  listTraces(filter: TraceFilter, page: ListPage, sort?: readonly SortKey<TraceSort>[]): Promise<Listed<Trace>>;
  readTrace(of: Pick<TraceFilter, "projectId" | "appId">, traceId: string): Promise<Trace | undefined>;
  /** In the order in which they began. */
  readSpans(trace: Pick<TraceHead, "project_id" | "id">, page: ListPage): Promise<Listed<Span>>;
  listSessions(
    filter: { projectId: string; appId?: string; createdAt?: readonly TimeBound[] },
    page: ListPage,
    sort?: readonly SortKey<"created_at" | "id">[],
  ): Promise<Listed<TraceSession>>;
  /** The newest first, a few at a time; ending the iteration, or the signal, lets go of the store at once. */
  streamTraces(filter: TraceFilter, limit: number, signal: AbortSignal): AsyncIterable<readonly Trace[]>;
  /** Deletes traces with their spans. @returns how many there were */
  deleteTraces(of: Pick<TraceFilter, "projectId" | "appId">, traceIds: readonly string[]): Promise<number>;
  /** Deletes what was kept long enough, and makes room for what comes. To be called often. */
  purge(): Promise<void>;
}
