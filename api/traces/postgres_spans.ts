/** How traces are written to Postgres. How they are read is in `postgres_traces.ts`. */
import { type AnySql, json, type Sql } from "#store/sql.ts";
import type { TraceSpans } from "./span.ts";
import { dayOf, makeSpanDays } from "./span_days.ts";
import type { SpanStore } from "./span_store.ts";
import { storedHead, storedSpan } from "./stored_span.ts";

/** Days that are known to be there; forgotten when Postgres says that one is not. */
const knownDaysMax = 1000;

export function postgresSpanWriter(sql: Sql, now: () => Date): Pick<SpanStore, "writeSpans" | "rewriteTraces"> {
  const known = new Set<string>();
  const requireDays = async (batch: readonly TraceSpans[]) => {
    const days = [...new Set(batch.flatMap(({ spans }) => spans.map(({ started_at }) => dayOf(started_at))))];
    const missing = days.filter((day) => !known.has(day)).sort();
    if (missing.length === 0) return;
    await makeSpanDays(sql, missing);
    if (known.size > knownDaysMax) known.clear();
    for (const day of missing) known.add(day);
  };
  /** A day may have been dropped since it was last written to. */
  const withDays = async <T>(batch: readonly TraceSpans[], write: () => Promise<T>): Promise<T> => {
    await requireDays(batch);
    try {
      return await write();
    } catch (error) {
      if (!lacksDay(error)) throw error;
      known.clear();
      await requireDays(batch);
      return write();
    }
  };
  return {
    writeSpans: (batch) =>
      withDays(batch, async () => {
        const rows = rowsOf(batch);
        if (rows.spans.length === 0) return 0;
        return addSpans(sql, rows, now());
      }),
    rewriteTraces: (batch) => withDays(batch, () => rewrite(sql, batch, now())),
  };
}

/** 23514 without a constraint's name: no partition for the row. */
function lacksDay(error: unknown): boolean {
  const { code, constraint_name } = error as { code?: string; constraint_name?: string };
  return code === "23514" && !constraint_name;
}

interface Rows {
  traces: ReturnType<typeof storedHead>[];
  spans: ReturnType<typeof storedSpan>[];
}

function rowsOf(batch: readonly TraceSpans[]): Rows {
  const traces = new Map<string, Rows["traces"][number]>();
  const spans: Rows["spans"] = [];
  for (const { trace, spans: own } of batch) {
    const root = own.find(({ parent_span_id }) => parent_span_id === null)?.span_id ?? null;
    const key = `${trace.project_id} ${trace.id}`;
    const head = storedHead(trace, root);
    const before = traces.get(key);
    traces.set(key, before ? merged(before, head) : head);
    for (const span of own) spans.push(storedSpan(trace, span));
  }
  return { traces: [...traces.values()], spans };
}

/** The same trace twice in a batch: what the first one does not know, the second may. */
function merged(first: Rows["traces"][number], second: Rows["traces"][number]): Rows["traces"][number] {
  return {
    ...first,
    app_id: first.app_id ?? second.app_id,
    root_span_id: first.root_span_id ?? second.root_span_id,
    session_id: first.session_id ?? second.session_id,
    user_id: first.user_id ?? second.user_id,
    tags: first.tags.length > 0 ? first.tags : second.tags,
    metadata: first.metadata === "{}" ? second.metadata : first.metadata,
  };
}

const givenTraces = (sql: AnySql, traces: Rows["traces"]) => sql`
  json_to_recordset(${json(sql, traces)}) as given (
    project_id uuid, id uuid, organization_id uuid, app_id uuid, source text, source_id text, root_span_id text,
    session_id text, user_id text, tags json, metadata text)`;

const givenSpans = (sql: AnySql, spans: Rows["spans"]) => sql`
  json_to_recordset(${json(sql, spans)}) as given (
    project_id uuid, trace_id uuid, span_id text, started_at timestamptz, parent_span_id text, kind text, name text,
    status text, status_message text, duration_us bigint, model text, provider text, prompt_tokens bigint,
    completion_tokens bigint, cached_tokens bigint, cost_usd double precision, tool_name text, input text, output text,
    truncated json, attributes text, events text, links text, is_billed boolean)`;

const spanColumns = (sql: AnySql) => sql`
  project_id, trace_id, span_id, started_at, parent_span_id, kind, name, status, status_message, duration_us, model,
  provider, prompt_tokens, completion_tokens, cached_tokens, cost_usd, tool_name, input, output, truncated, attributes,
  events, links`;

/** In the order of their key: two who bring the same spans never wait for each other in a circle. */
const spanValues = (sql: AnySql, spans: Rows["spans"]) => sql`
  select project_id, trace_id, span_id, started_at, parent_span_id, kind, name, status, status_message, duration_us,
         model, provider, prompt_tokens, completion_tokens, cached_tokens, cost_usd, tool_name, input::json,
         output::json, ${textArray(sql, "truncated")}, attributes::json, events::json, links::json
  from ${givenSpans(sql, spans)} order by project_id, trace_id, span_id`;

const textArray = (sql: AnySql, column: string) => sql`array(select json_array_elements_text(${sql(column)}))`;

/** What spans say of their trace, added up. */
const sums = (sql: AnySql, billed: ReturnType<typeof isBilled>) => sql`
  count(*)::integer as span_count,
  (count(*) filter (where status = 'failed'))::integer as error_count,
  min(started_at) as started_at,
  max(started_at + duration_us * interval '1 microsecond') as ended_at,
  coalesce(sum(prompt_tokens) filter (where ${billed}), 0)::bigint as prompt_tokens,
  coalesce(sum(completion_tokens) filter (where ${billed}), 0)::bigint as completion_tokens,
  coalesce(sum(cached_tokens) filter (where ${billed}), 0)::bigint as cached_tokens,
  sum(cost_usd) filter (where ${billed}) as cost_usd,
  (array_agg(model order by started_at, span_id) filter (where ${billed} and model is not null))[1] as model,
  (array_agg(provider order by started_at, span_id) filter (where ${billed} and provider is not null))[1] as provider`;

const isBilled = (sql: AnySql) => sql`kind in ('llm', 'embedding', 'stt', 'tts')`;

/** One statement: spans that are new, and their traces grown by those alone. */
async function addSpans(sql: Sql, { traces, spans }: Rows, now: Date): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    with added as (
      insert into span (${spanColumns(sql)}) ${spanValues(sql, spans)}
      on conflict do nothing
      returning project_id, trace_id, span_id, started_at, kind, name, status, duration_us, model, provider,
                prompt_tokens, completion_tokens, cached_tokens, cost_usd, input, output),
    grown as (select project_id, trace_id, ${sums(sql, isBilled(sql))} from added group by project_id, trace_id),
    written as (
      insert into trace
        (project_id, id, organization_id, app_id, source, source_id, root_span_id, name, status, session_id, user_id,
         started_at, ended_at, input, output, model, provider, prompt_tokens, completion_tokens, cached_tokens, cost_usd,
         span_count, error_count, tags, metadata, written_at)
      select given.project_id, given.id, organization_id, app_id, source, source_id, root.span_id, coalesce(root.name, ''),
             coalesce(root.status, 'running'), session_id, user_id, grown.started_at, grown.ended_at, root.input,
             root.output, grown.model, grown.provider, grown.prompt_tokens, grown.completion_tokens,
             grown.cached_tokens, grown.cost_usd, span_count, error_count, ${textArray(sql, "tags")}, metadata::json, ${now}
      from ${givenTraces(sql, traces)}
      join grown on grown.project_id = given.project_id and grown.trace_id = given.id
      left join added root on root.project_id = given.project_id and root.trace_id = given.id
        and root.span_id = given.root_span_id
      order by given.project_id, given.id
      on conflict (project_id, id) do update
      set app_id = coalesce(trace.app_id, excluded.app_id),
          root_span_id = coalesce(trace.root_span_id, excluded.root_span_id),
          name = case when trace.root_span_id is null then excluded.name else trace.name end,
          status = case when trace.root_span_id is null then excluded.status else trace.status end,
          input = case when trace.root_span_id is null then excluded.input else trace.input end,
          output = case when trace.root_span_id is null then excluded.output else trace.output end,
          session_id = coalesce(trace.session_id, excluded.session_id),
          user_id = coalesce(trace.user_id, excluded.user_id),
          started_at = least(trace.started_at, excluded.started_at),
          ended_at = greatest(trace.ended_at, excluded.ended_at),
          model = coalesce(trace.model, excluded.model),
          provider = coalesce(trace.provider, excluded.provider),
          prompt_tokens = trace.prompt_tokens + excluded.prompt_tokens,
          completion_tokens = trace.completion_tokens + excluded.completion_tokens,
          cached_tokens = trace.cached_tokens + excluded.cached_tokens,
          cost_usd = case when excluded.cost_usd is null then trace.cost_usd
                          else coalesce(trace.cost_usd, 0) + excluded.cost_usd end,
          span_count = trace.span_count + excluded.span_count,
          error_count = trace.error_count + excluded.error_count,
          tags = case when trace.tags = '{}' then excluded.tags else trace.tags end,
          metadata = case when trace.metadata::text = '{}' then excluded.metadata else trace.metadata end,
          written_at = excluded.written_at
      returning project_id, app_id, session_id, started_at),
    noted as (${noteSessions(sql, sql`written`)})
    select count(*)::integer as count from added`;
  return rows[0]?.count ?? 0;
}

/** Their sessions, of which each is one row. */
const noteSessions = (sql: AnySql, written: ReturnType<typeof isBilled>) => sql`
  insert into trace_session (project_id, app_id, id, created_at, last_trace_at)
  select project_id, app_id, session_id, min(started_at), max(started_at)
  from ${written} where session_id is not null
  group by project_id, app_id, session_id order by project_id, app_id, session_id
  on conflict on constraint trace_session_key do update
  set created_at = least(trace_session.created_at, excluded.created_at),
      last_trace_at = greatest(trace_session.last_trace_at, excluded.last_trace_at)
  where trace_session.created_at > excluded.created_at or trace_session.last_trace_at < excluded.last_trace_at`;

/**
 * The traces are locked first, and their sums are taken of all that stands in `span` then: somebody who adds spans
 * to one of them has done so before, or adds to these sums afterwards.
 */
async function rewrite(sql: Sql, batch: readonly TraceSpans[], now: Date): Promise<void> {
  const { traces, spans } = rowsOf(batch);
  if (traces.length === 0) return;
  await sql.begin(async (transaction) => {
    const keys = transaction`(select project_id, id, root_span_id from ${givenTraces(transaction, traces)})`;
    // One connection, one after the other, but without a wait for each answer.
    await Promise.all([
      lockTraces(transaction, traces, now),
      transaction`
        insert into span (${spanColumns(transaction)}) ${spanValues(transaction, spans)}
        on conflict (project_id, trace_id, span_id, started_at) do update
        set parent_span_id = excluded.parent_span_id, kind = excluded.kind, name = excluded.name,
            status = excluded.status, status_message = excluded.status_message, duration_us = excluded.duration_us,
            model = excluded.model, provider = excluded.provider, prompt_tokens = excluded.prompt_tokens,
            completion_tokens = excluded.completion_tokens, cached_tokens = excluded.cached_tokens,
            cost_usd = excluded.cost_usd, tool_name = excluded.tool_name, input = excluded.input,
            output = excluded.output, truncated = excluded.truncated, attributes = excluded.attributes,
            events = excluded.events, links = excluded.links`,
      transaction`
        with own as ${keys},
        summed as (
          select project_id, trace_id, ${sums(transaction, isBilled(transaction))}
          from span where (project_id, trace_id) in (select project_id, id from own) group by project_id, trace_id),
        written as (
          update trace
          set name = root.name, status = root.status, input = root.input, output = root.output,
              started_at = summed.started_at, ended_at = summed.ended_at, model = summed.model,
              provider = summed.provider, prompt_tokens = summed.prompt_tokens,
              completion_tokens = summed.completion_tokens, cached_tokens = summed.cached_tokens,
              cost_usd = summed.cost_usd, span_count = summed.span_count, error_count = summed.error_count,
              settled_at = ${now}
          from own join summed on summed.project_id = own.project_id and summed.trace_id = own.id
          join span root on root.project_id = own.project_id and root.trace_id = own.id
            and root.span_id = own.root_span_id
          where trace.project_id = own.project_id and trace.id = own.id
          returning trace.project_id, trace.app_id, trace.session_id, trace.started_at)
        ${noteSessions(transaction, transaction`written`)}`,
    ]);
  });
}

/** The rows of the traces, ours from here on whoever began them; locked in the order of their keys. */
function lockTraces(sql: AnySql, traces: Rows["traces"], now: Date) {
  return sql`
    insert into trace
      (project_id, id, organization_id, app_id, source, source_id, root_span_id, status, session_id, user_id, started_at,
       tags, metadata, written_at)
    select project_id, id, organization_id, app_id, source, source_id, root_span_id, 'running', session_id, user_id,
           ${now}, ${textArray(sql, "tags")}, metadata::json, ${now}
    from ${givenTraces(sql, traces)} order by project_id, id
    on conflict (project_id, id) do update
    set app_id = excluded.app_id, source = excluded.source, source_id = excluded.source_id,
        root_span_id = excluded.root_span_id, session_id = excluded.session_id, user_id = excluded.user_id,
        tags = excluded.tags, metadata = excluded.metadata, written_at = excluded.written_at`;
}
