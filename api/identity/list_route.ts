/**
 * A list of the platform as data: which rows, which filters, what it is sorted by. Paging, the
 * envelope and the words for its query are the same in every list.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import type { Named } from "#contracts/named_schema.ts";
import { pageOf, pageWith, paginationFor, pagingQuery, type SortKey, sortOf } from "#http/paging.ts";
import { type Exchange, type Guard, type Route, type RouteSpec, route } from "#http/route.ts";
import { timeBoundsOf, timeRangeQuery } from "#http/time_range.ts";
import { type AnySql, type Fragment, selectPage } from "#store/sql.ts";

/** The rows of a list, as pieces of its statement. */
export interface ListedRows {
  columns: Fragment;
  /** A table, or a subquery with a name. */
  from: Fragment;
  /** Those that the caller may see. */
  where: Fragment;
  /** What filters look at that are no columns: `{state: case … end}`. */
  computed?: Readonly<Record<string, Fragment>>;
}

type Shared = "summary" | "errors" | "examples" | "paramsFrom";

export interface List<Principal, Path extends string, Row extends TSchema, Filters extends TProperties>
  extends Pick<RouteSpec<Principal, Path, TProperties, TSchema, TSchema>, Shared> {
  path: Path;
  guard: Guard<Principal>;
  row: Named<Row>;
  /** Query fields that rows must equal where they are given, named as their columns. */
  filters?: Filters;
  /** Columns with a time, which can be asked for by range: `started_at:gte`. */
  times?: readonly string[];
  /** Columns that it can be sorted by; a list without any has one order. */
  sort: readonly string[];
  /** The newest first unless given. */
  order?: readonly SortKey[];
  /** An object, never a lone fragment, which a promise would send to the database. */
  rows(
    exchange: Exchange<Principal, Record<string, string>, Partial<Static<TObject<Filters>>>, unknown>,
  ): ListedRows | Promise<ListedRows>;
}

const newestFirst: readonly SortKey[] = [{ column: "created_at", descending: true }];

/** @throws ApiError bad_request for a sort or a range that cannot be */
export function listRoute<
  Principal,
  const Path extends string,
  Row extends TSchema,
  Filters extends TProperties = Record<never, never>,
>(sql: AnySql, list: List<Principal, Path, Row, Filters>): Route {
  const { row, filters, times = [], sort, order = newestFirst, rows, ...spec } = list;
  const { sort: sortField, ...paging } = pagingQuery;
  const filterNames = Object.keys(filters ?? {});
  return route<Principal, string, TProperties, TSchema, TSchema>({
    ...spec,
    method: "GET",
    query: {
      ...paging,
      ...(sort.length > 0 && { sort: sortField }),
      ...optional(filters ?? {}),
      ...Object.assign({}, ...times.map((column) => timeRangeQuery(column))),
    },
    reply: { status: 200, body: pageWith(row) as Named },
    handle: async (exchange) => {
      const query = exchange.query as Readonly<Record<string, unknown>>;
      const page = pageOf(query);
      const { columns, from, where, computed = {} } = await rows(exchange as unknown as Parameters<typeof rows>[0]);
      const conditions = [
        ...filterNames.flatMap((name) =>
          query[name] === undefined ? [] : [sql`and ${computed[name] ?? sql(name)} = ${query[name] as string}`],
        ),
        ...times.flatMap((column) =>
          timeBoundsOf(query, column).map(
            ({ comparison, at }) => sql`and ${sql(column)} ${sql.unsafe(comparison)} ${at}`,
          ),
        ),
      ];
      const { rows: found, totalCount } = await selectPage<unknown>(sql, {
        columns,
        from,
        where: conditions.length > 0 ? sql`${where} ${conditions}` : where,
        sort: sortOf(query.sort as string | undefined, sort, order),
        page,
      });
      return { data: found, pagination: paginationFor(page, totalCount) };
    },
  });
}

const optional = (fields: TProperties): TProperties =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)]));
