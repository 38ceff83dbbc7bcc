/** Lists: `page` and `page_size` in, `pagination` out, and `sort` against an allow-list of columns. */
import { type Static, type TArray, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { type Named, named } from "#contracts/named_schema.ts";

export const pageSizeDefault = 20;
export const pageSizeMax = 100;
/** Keeps `page * page_size` an exact integer, and far beyond any list of ours. */
const pageMax = 1_000_000_000;

/** Query fields of every list; spread them into a route's `query`. */
export const pagingQuery = {
  page: Type.Optional(Type.Integer({ description: "1-based; clamped to 1 and above" })),
  page_size: Type.Optional(Type.Integer({ description: "default 20, clamped to 1…100" })),
  sort: Type.Optional(
    Type.String({ maxLength: 200, description: "fields, comma-separated; a leading - is descending" }),
  ),
};

export const Pagination = named(
  "Pagination",
  Type.Object(
    { page: Type.Integer(), page_size: Type.Integer(), page_count: Type.Integer(), total_count: Type.Integer() },
    { description: "which page this is, and of how many" },
  ),
  {
    page: "this page's number; the first is 1",
    page_size: "at most so many on a page",
    page_count: "pages that there are",
    total_count: "on all pages together",
  },
);
export type Pagination = Static<typeof Pagination>;

export interface Page {
  page: number;
  pageSize: number;
  offset: number;
}

/** The page that a query asks for, with both numbers clamped to their bounds. */
export function pageOf(query: { page?: number; page_size?: number }): Page {
  const page = clamp(query.page ?? 1, 1, pageMax);
  const pageSize = clamp(query.page_size ?? pageSizeDefault, 1, pageSizeMax);
  return { page, pageSize, offset: (page - 1) * pageSize };
}

const clamp = (value: number, min: number, max: number) => Math.min(Math.max(value, min), max);

export function paginationFor({ page, pageSize }: Page, totalCount: number): Pagination {
  return { page, page_size: pageSize, page_count: Math.ceil(totalCount / pageSize), total_count: totalCount };
}

export interface SortKey<Column extends string = string> {
  column: Column;
  descending: boolean;
}

/**
 * `-created_at,name` as keys. Fields are columns of the same name, from `columns` only.
 * @throws ApiError bad_request that names the fields which can be sorted by
 */
export function sortOf<Column extends string>(
  text: string | undefined,
  columns: readonly Column[],
  byDefault: readonly SortKey<Column>[],
): readonly SortKey<Column>[] {
  if (text === undefined || text === "") return byDefault;
  const keys = text.split(",").map((part): SortKey<Column> => {
    const descending = part.startsWith("-");
    const column = columns.find((name) => name === (descending ? part.slice(1) : part));
    if (!column) {
      throw new ApiError("bad_request", {
        details: { sort: `Expected fields of ${columns.join(", ")}, each with an optional -` },
      });
    }
    return { column, descending };
  });
  if (new Set(keys.map((key) => key.column)).size < keys.length) {
    throw new ApiError("bad_request", { details: { sort: "Expected each field once" } });
  }
  return keys;
}

/** `{data}`: the platform's answer with one of them. */
export function dataOf<S extends TSchema>(schema: Named<S>): Named<TObject<{ data: S }>> {
  return named(`One${schema.$id}`, Type.Object({ data: schema as S }), { data: "the resource as it is now" } as never);
}

/** `{data, pagination}`: the platform's answer with a page of them. */
export function pageWith<S extends TSchema>(schema: Named<S>): Named<PageReply<S>> {
  return named(`${schema.$id}Page`, Type.Object({ data: Type.Array(schema as S), pagination: Pagination }), {
    data: "this page's, in the order that `sort` asks for",
  } as never);
}

type PageReply<S extends TSchema> = TObject<{ data: TArray<S>; pagination: typeof Pagination }>;
