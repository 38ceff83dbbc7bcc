/**
 * What is to be written as a trace. Who ends a run or a call notes it in the same transaction; workers make the
 * trace from the record afterwards. So writing spans holds up nobody, a trace agrees with its record because it is
 * made of it, and whatever is killed in between, the note is there until the trace is.
 */
import type { AnySql, Fragment, Sql } from "#store/sql.ts";
import { boundedTrace } from "./own_span.ts";
import type { TraceHead, TraceSource, TraceSpans } from "./span.ts";
import type { SpanStore } from "./span_store.ts";

export type RecordedSource = Exclude<TraceSource, "otlp">;

/** Of one source: its traces made from the records with these ids. Who is not there any more has none. */
export type MakeTraces = (ids: readonly string[]) => Promise<TraceSpans[]>;

/** Inside the transaction in which they end, or grow. */
export function noteTracesDue(sql: AnySql, source: RecordedSource, ids: readonly string[]) {
  return noteTracesOf(sql, source, sql`unnest(${ids}::uuid[]) ended (id)`);
}

/** The same of rows that have an `id`. @param rows what can stand after `from` */
export function noteTracesOf(sql: AnySql, source: RecordedSource, rows: Fragment) {
  return sql`insert into trace_due (source, source_id) select ${source}, id from ${rows}`;
}

/** Records read at once: their events are in memory until their traces are written. */
const takenMax = 50;
/** A worker that took some and died is replaced after this. */
const leaseMs = 30_000;

interface Due {
  id: string;
  source: RecordedSource;
  source_id: string;
}

/** Which of these records are still there. */
export type KnownRecords = (ids: readonly string[]) => PromiseLike<readonly { id: string }[]>;

export interface DueTracesDeps {
  sql: Sql;
  store: SpanStore;
  now(): Date;
  /** Spans above a trace's bound were left out. */
  onDropped(trace: TraceHead, spans: number): void;
  makeTraces: Readonly<Record<RecordedSource, MakeTraces>>;
  stillThere: Readonly<Record<RecordedSource, KnownRecords>>;
}

/** Writes what is due, until nothing is. Any number of workers may at once. @returns how many traces were written */
export async function writeDueTraces(deps: DueTracesDeps): Promise<number> {
  for (let written = 0; ; ) {
    const due = await takeDue(deps.sql, deps.now());
    for (const source of ["run", "call"] as const) {
      const ids = [...new Set(due.filter((one) => one.source === source).map(({ source_id }) => source_id))];
      if (ids.length === 0) continue;
      const made = (await deps.makeTraces[source](ids)).map(boundedTrace);
      await deps.store.rewriteTraces(made.map(({ trace }) => trace));
      written += made.length;
      await forgetGone(
        deps,
        source,
        made.map(({ trace }) => trace.trace),
      );
      for (const { trace, dropped } of made) if (dropped > 0) deps.onDropped(trace.trace, dropped);
    }
    await deps.sql`delete from trace_due where id = any (${due.map(({ id }) => id)}::bigint[])`;
    if (due.length < takenMax) return written;
  }
}

/** A record that was deleted while its trace was made takes the trace along: its eraser found none, or this does. */
async function forgetGone({ store, stillThere }: DueTracesDeps, source: RecordedSource, made: readonly TraceHead[]) {
  if (made.length === 0) return;
  const rows = await stillThere[source](made.flatMap(({ source_id }) => source_id ?? []));
  const known = new Set(rows.map(({ id }) => id));
  for (const { project_id, id, source_id } of made) {
    if (source_id !== null && !known.has(source_id)) await store.deleteTraces({ projectId: project_id }, [id]);
  }
}

function takeDue(sql: Sql, now: Date) {
  return sql<Due[]>`
    update trace_due set leased_until = ${new Date(now.getTime() + leaseMs)}
    where id in (
      select id from trace_due where leased_until < ${now} order by id limit ${takenMax} for update skip locked)
    returning id, source, source_id`;
}
