/**
 * A list of the platform as data: which rows, which filters, what it is sorted by. Paging, the
 * envelope and the words for its query are the same in every list.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import type { Named } from "#contracts/named_schema.ts";
import { type Page, pageOf, pageWith, paginationFor, pagingQuery, type SortKey, sortOf } from "#http/paging.ts";
import { type Exchange, type Guard, type Route, type RouteSpec, route } from "#http/route.ts";
import { type TimeBound, timeBoundsOf, timeRangeQuery } from "#http/time_range.ts";
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

/** What is the same of all lists, wherever their rows come from. */
export interface PagedList<Path extends string, Row extends TSchema, Filters extends TProperties, Principal>
  extends Pick<RouteSpec<Principal, Path, TProperties, TSchema, TSchema>, Shared> {
  path: Path;
  guard: Guard<Principal>;
  row: Named<Row>;
  /** Schemas of the path's parameters that are not ids. */
  params?: TProperties;
  /** Query fields that rows must equal where they are given, named as their columns. */
  filters?: Filters;
  /** Columns with a time, which can be asked for by range: `started_at:gte`. */
  times?: readonly string[];
  /** Columns that it can be sorted by; a list without any has one order. */
  sort: readonly string[];
  /** The newest first unless given. */
  order?: readonly SortKey[];
}

type ListExchange<Principal, Filters extends TProperties> = Exchange<
  Principal,
  Record<string, string>,
  Partial<Static<TObject<Filters>>>,
  unknown
>;

/** What a request asks of a list. */
export interface Asked {
  page: Page;
  sort: readonly SortKey[];
  /** By column. */
  times: Readonly<Record<string, readonly TimeBound[]>>;
}

export interface FoundRows {
  rows: readonly unknown[];
  totalCount: number;
  /** There are more than `totalCount`: header `Total-Count: lower-bound` says so. */
  isLowerBound?: boolean;
}

export interface List<Principal, Path extends string, Row extends TSchema, Filters extends TProperties>
  extends PagedList<Path, Row, Filters, Principal> {
  /** An object, never a lone fragment, which a promise would send to the database. */
  rows(exchange: ListExchange<Principal, Filters>): ListedRows | Promise<ListedRows>;
}

const newestFirst: readonly SortKey[] = [{ column: "created_at", descending: true }];

/** A list whose rows are one statement's. @throws ApiError bad_request for a sort or a range that cannot be */
export function listRoute<
  Principal,
  const Path extends string,
  Row extends TSchema,
  Filters extends TProperties = Record<never, never>,
>(sql: AnySql, { rows, ...list }: List<Principal, Path, Row, Filters>): Route {
  const filterNames = Object.keys(list.filters ?? {});
  return pagedRoute(list, async (exchange, { page, sort, times }) => {
    const query = exchange.query as Readonly<Record<string, unknown>>;
    const { columns, from, where, computed = {} } = await rows(exchange);
    const conditions = [
      ...filterNames.flatMap((name) =>
        query[name] === undefined ? [] : [sql`and ${computed[name] ?? sql(name)} = ${query[name] as string}`],
      ),
      ...Object.entries(times).flatMap(([column, bounds]) =>
        bounds.map(({ comparison, at }) => sql`and ${sql(column)} ${sql.unsafe(comparison)} ${at}`),
      ),
    ];
    const within = conditions.length > 0 ? sql`${where} ${conditions}` : where;
    return selectPage<unknown>(sql, { columns, from, where: within, sort, page });
  });
}

/** A list whose rows something else finds. @throws ApiError bad_request for a sort or a range that cannot be */
export function pagedRoute<
  Principal,
  const Path extends string,
  Row extends TSchema,
  Filters extends TProperties = Record<never, never>,
>(
  list: PagedList<Path, Row, Filters, Principal>,
  find: (exchange: ListExchange<Principal, Filters>, asked: Asked) => Promise<FoundRows>,
): Route {
  const { row, filters, times = [], sort, order = newestFirst, ...spec } = list;
  const { sort: sortField, ...paging } = pagingQuery;
  return route<Principal, string, TProperties, TSchema, TSchema, TProperties>({
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
      const asked = {
        page,
        sort: sortOf(query.sort as string | undefined, sort, order),
        times: Object.fromEntries(times.map((column) => [column, timeBoundsOf(query, column)])),
      };
      const { rows, totalCount, isLowerBound } = await find(
        exchange as unknown as ListExchange<Principal, Filters>,
        asked,
      );
      const body = { data: rows, pagination: paginationFor(page, totalCount) };
      return isLowerBound ? Response.json(body, { headers: { "total-count": "lower-bound" } }) : body;
    },
  });
}

const optional = (fields: TProperties): TProperties =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)]));
