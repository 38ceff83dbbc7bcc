/** How traces are read from Postgres, and deleted. */
import type { SortKey } from "#http/paging.ts";
import type { TimeBound } from "#http/time_range.ts";
import { type AnySql, type Fragment, oneRow, type Sql } from "#store/sql.ts";
import type { Span, Trace, TraceHead } from "./span.ts";
import {
  countedMax,
  type Listed,
  type ListPage,
  type SpanStore,
  type TraceFilter,
  type TraceSession,
} from "./span_store.ts";

/** Traces that a download holds at once. */
const streamedAtOnce = 50;

const newestFirst: readonly SortKey<"started_at">[] = [{ column: "started_at", descending: true }];

export function postgresTraceReader(sql: Sql): Omit<SpanStore, "writeSpans" | "rewriteTraces" | "purge"> {
  return {
    listTraces: (filter, page, sort = newestFirst) =>
      listed<Trace>(sql, {
        columns: traceColumns(sql),
        from: sql`trace`,
        where: whereOf(sql, filter),
        order: orderOf(sql, sort, sql`id`),
        page,
      }),
    async readTrace(of, traceId) {
      const [trace] = await sql<Trace[]>`
        select ${traceColumns(sql)} from trace where ${whereOf(sql, of)} and id = ${traceId}`;
      return trace;
    },
    readSpans: ({ project_id, id }, page) =>
      listed<Span>(sql, {
        columns: spanColumns(sql),
        from: sql`span`,
        where: spansOf(sql, { project_id, id }),
        order: sql`order by started_at, span_id`,
        page,
      }),
    listSessions: (filter, page, sort = [{ column: "created_at", descending: true }]) =>
      listed<TraceSession>(sql, {
        columns: sql`session.id, created_at, last_trace_at, first.input, ${traceCount(sql)} as trace_count`,
        from: sql`
          trace_session session left join lateral (
            select input from trace
            where trace.project_id = session.project_id and trace.session_id = session.id
              and trace.app_id is not distinct from session.app_id
            order by trace.started_at, trace.id limit 1) first on true`,
        where: sql`
          session.project_id = ${filter.projectId}
          ${filter.appId === undefined ? sql`` : sql`and session.app_id = ${filter.appId}`}
          ${bounds(sql, "created_at", filter.createdAt)}`,
        order: orderOf(sql, sort, sql`session.id`),
        page,
      }),
    async *streamTraces(filter, limit, signal) {
      // A statement for each portion, and none while the reader takes it in: a slow one holds no connection.
      let after: Fragment = sql``;
      for (let left = limit; left > 0; ) {
        signal.throwIfAborted();
        const rows: (Trace & { place: string })[] = await sql`
          select ${traceColumns(sql)}, started_at::text as place from trace where ${whereOf(sql, filter)} ${after}
          ${orderOf(sql, newestFirst, sql`id`)} limit ${Math.min(left, streamedAtOnce)}`;
        const last = rows.at(-1);
        if (!last) return;
        after = sql`and started_at <= ${last.place}::timestamptz
          and (started_at < ${last.place}::timestamptz or id > ${last.id})`;
        left = rows.length < streamedAtOnce ? 0 : left - rows.length;
        yield rows.map(({ place: _, ...trace }) => trace);
      }
    },
    deleteTraces: (of, traceIds) => deleteTraces(sql, of, traceIds),
  };
}

/** The trace's own times tell Postgres which days to look at: of all others not even the index is read. */
export function spansOf(sql: AnySql, { project_id, id }: Pick<TraceHead, "project_id" | "id">): Fragment {
  const own = sql`from trace where trace.project_id = ${project_id} and trace.id = ${id}`;
  return sql`project_id = ${project_id} and trace_id = ${id}
    and started_at >= (select trace.started_at ${own}) and started_at <= (select trace.ended_at ${own})`;
}

interface ListQuery {
  columns: Fragment;
  from: Fragment;
  where: Fragment;
  order: Fragment;
  page: ListPage;
}

async function listed<Row>(sql: Sql, { columns, from, where, order, page }: ListQuery): Promise<Listed<Row>> {
  const [rows, counts] = await Promise.all([
    sql<(Row & object)[]>`
      select ${columns} from ${from} where ${where} ${order} limit ${page.pageSize} offset ${page.offset}`,
    sql<{ count: number }[]>`
      select count(*)::integer as count from (select from ${from} where ${where} limit ${countedMax + 1}) counted`,
  ]);
  return { rows: [...rows], totalCount: oneRow(counts).count };
}

function whereOf(sql: AnySql, filter: TraceFilter): Fragment {
  const equal = (column: string, value: string | undefined) =>
    value === undefined ? sql`` : sql`and ${sql(column)} = ${value}`;
  return sql`
    project_id = ${filter.projectId} ${equal("app_id", filter.appId)} ${equal("status", filter.status)}
    ${equal("session_id", filter.sessionId)} ${equal("user_id", filter.userId)} ${equal("model", filter.model)}
    ${bounds(sql, "started_at", filter.startedAt)}`;
}

/** An empty list would be a parameter, not a piece of a statement. */
const bounds = (sql: AnySql, column: string, given: readonly TimeBound[] = []): Fragment =>
  given.reduce<Fragment>(
    (before, { comparison, at }) => sql`${before} and ${sql(column)} ${sql.unsafe(comparison)} ${at}`,
    sql``,
  );

function orderOf(sql: AnySql, sort: readonly SortKey[], last: Fragment): Fragment {
  const keys = sort.map(({ column, descending }) =>
    descending ? sql`${sql(column)} desc, ` : sql`${sql(column)} asc, `,
  );
  return sql`order by ${keys} ${last}`;
}

const traceCount = (sql: AnySql) => sql`(
  select count(*)::integer from trace
  where trace.project_id = session.project_id and trace.session_id = session.id
    and trace.app_id is not distinct from session.app_id)`;

/** As clients read it. */
const traceColumns = (sql: AnySql) => sql`
  id, source, source_id, project_id, app_id, name, status, session_id, user_id, started_at,
  case when status <> 'running' then ended_at end as ended_at,
  case when status <> 'running' then (extract(epoch from ended_at - started_at) * 1000)::double precision end as duration_ms,
  input, output, model, provider,
  json_build_object(
    'prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens,
    'total_tokens', prompt_tokens + completion_tokens, 'cached_tokens', cached_tokens, 'cost_usd', cost_usd) as usage,
  span_count, error_count, tags, metadata`;

const spanColumns = (sql: AnySql) => sql`
  span_id, parent_span_id, kind, name, status, status_message, started_at, duration_us / 1000.0::double precision as duration_ms,
  model, provider, prompt_tokens::double precision, completion_tokens::double precision, cached_tokens::double precision,
  cost_usd, tool_name, input, output, truncated, attributes, events, links`;

async function deleteTraces(
  sql: Sql,
  of: Pick<TraceFilter, "projectId" | "appId">,
  traceIds: readonly string[],
): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with gone as (
      delete from trace where ${whereOf(sql, of)} and id = any (${traceIds}::uuid[])
      returning project_id, id, app_id, session_id),
    spans as (
      delete from span using gone where span.project_id = gone.project_id and span.trace_id = gone.id),
    sessions as (
      delete from trace_session session using gone
      where session.project_id = gone.project_id and session.id = gone.session_id
        and session.app_id is not distinct from gone.app_id
        and not exists (
          select from trace left_over
          where left_over.project_id = session.project_id and left_over.session_id = session.id
            and left_over.app_id is not distinct from session.app_id
            and left_over.id not in (select id from gone)))
    select count(*)::integer as count from gone`;
  return row?.count ?? 0;
}
