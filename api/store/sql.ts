/** The Postgres client, and what our statements have in common. */
import postgres from "postgres";
import { ApiError } from "#contracts/errors.ts";
import { createTransactionPlaces, type TransactionPlaces } from "./transaction_places.ts";

export type Sql = postgres.Sql;
/** A pool that tells how its transactions fare. */
export type SqlPool = Sql & { transactions: Pick<TransactionPlaces, "taken" | "waiting"> };
/** A client inside a transaction or outside: for statements that work in both. */
export type AnySql = postgres.ISql;

export interface OpenSqlOptions {
  databaseUrl: string;
  /** Connections kept at most; further statements queue in the client. */
  connectionsMax?: number;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
  /** A transaction waits so long for its turn, then it fails as `unavailable`. */
  waitMsMax?: number;
  /** Postgres ends a statement that takes longer; 0 for none that does. */
  statementMsMax?: number;
  /** Postgres ends a statement that waits longer for a lock; 0 for none that does. */
  lockMsMax?: number;
}

/** Connections of a pool that no transaction takes. */
const keptForStatements = 2;
/** A process that stands still inside a transaction lets go of its locks after this. */
const idleInTransactionMsMax = 10_000;

/** Opens a pool. It connects on first use; end it with `sql.end()`. Transactions begin with a function alone. */
export function openSql({
  databaseUrl,
  connectionsMax = 10,
  applicationName = "frontdesk",
  waitMsMax = 5000,
  statementMsMax = 10_000,
  lockMsMax = 5000,
}: OpenSqlOptions): SqlPool {
  const limits = {
    statement_timeout: statementMsMax,
    lock_timeout: lockMsMax,
    idle_in_transaction_session_timeout: idleInTransactionMsMax,
  };
  const isPooled = usesPooler(databaseUrl);
  const sql = postgres(databaseUrl, {
    max: connectionsMax,
    connect_timeout: 5,
    backoff: (failures: number) => reconnectDelayS(failures, Math.random()),
    connection: { application_name: applicationName, ...(!isPooled && limits) },
    onnotice: () => undefined,
  });
  const places = createTransactionPlaces({ places: Math.max(1, connectionsMax - keptForStatements), waitMsMax });
  const begin = sql.begin.bind(sql);
  const guarded = (work: (transaction: postgres.TransactionSql) => Promise<unknown>) =>
    places.within(() =>
      begin(async (transaction) => {
        if (!isPooled) return work(transaction);
        // Sent now and not waited for: what comes behind them on the connection has them.
        const limited = Object.entries(limits).map(([name, ms]) =>
          transaction`select set_config(${name}, ${String(ms)}, true)`.execute(),
        );
        const [done] = await Promise.all([work(transaction), ...limited]);
        return done;
      }),
    );
  return Object.assign(sql, { begin: guarded as Sql["begin"], transactions: places });
}

/** Whether the address says that connections behind it are shared, as PgBouncer's are (`pooler.ts`). */
export function usesPooler(databaseUrl: string): boolean {
  return new URL(databaseUrl).searchParams.get("prepare") === "false";
}

/**
 * Seconds until a connection is tried again. The client counts failures of all of a pool's connections
 * together, and more of them say nothing more: a Postgres that is back is found within a second.
 * @param random 0 to 1, so that processes do not come back all at once
 */
export function reconnectDelayS(failures: number, random: number): number {
  return Math.min(1, 0.05 * 2 ** failures) * (0.5 + random / 2);
}

/** A `json` parameter, kept as it was written (`jsonb` would reorder a customer's fields). */
export function json(sql: AnySql, value: unknown) {
  const jsonOid = 114;
  return sql.typed(value as never, jsonOid);
}

/** The statement's only row. @throws Error when there is none */
export function oneRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error(`Expected a row, got ${rows.length}`);
  return row;
}

/** `order by` these columns, then by id, so that pages neither overlap nor skip. */
function orderBy(sql: AnySql, keys: readonly { column: string; descending: boolean }[]) {
  const parts = keys.map(({ column, descending }) =>
    descending ? sql`${sql(column)} desc nulls last, ` : sql`${sql(column)} asc nulls last, `,
  );
  return sql`order by ${parts} id`;
}

/** A piece of a statement. */
export type Fragment = ReturnType<typeof json> | postgres.PendingQuery<postgres.Row[]>;

export interface PageQuery {
  columns: Fragment;
  /** Tables and joins. */
  from: Fragment;
  where: Fragment;
  sort: readonly { column: string; descending: boolean }[];
  page: { pageSize: number; offset: number };
}

/** One page of a list, and how many rows there are on all of its pages. */
export async function selectPage<Row>(sql: AnySql, query: PageQuery): Promise<{ rows: Row[]; totalCount: number }> {
  const { columns, from, where, sort, page } = query;
  const [rows, counts] = await Promise.all([
    sql<(Row & object)[]>`
      select ${columns} from ${from} where ${where} ${orderBy(sql, sort)}
      limit ${page.pageSize} offset ${page.offset}`,
    sql<{ count: number }[]>`select count(*)::integer as count from ${from} where ${where}`,
  ]);
  return { rows, totalCount: oneRow(counts).count };
}

/** Whether `error` is the violation of this constraint or unique index. */
export function violates(error: unknown, constraintName: string): boolean {
  return error instanceof postgres.PostgresError && error.constraint_name === constraintName;
}

const connectionErrorCodes = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOTFOUND",
  "25P03", // idle_in_transaction_session_timeout
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "53300", // too_many_connections
]);

/** What Postgres ended on a connection that lives on. */
const tookTooLongCodes = new Set([
  "40P01", // deadlock_detected
  "55P03", // lock_not_available
  "57014", // query_canceled, by statement_timeout
]);

const codeOf = (error: unknown) => String((error as { code?: unknown } | undefined)?.code);

/** Whether `error` says that Postgres cannot be reached, or that the connection to it is gone. */
export function isLostConnection(error: unknown): boolean {
  return connectionErrorCodes.has(codeOf(error));
}

/** `unavailable` when `error` says that Postgres cannot be reached or took too long, otherwise undefined. */
export function unavailableStore(error: unknown): ApiError | undefined {
  if (!isLostConnection(error) && !tookTooLongCodes.has(codeOf(error))) return undefined;
  return new ApiError("unavailable", { cause: error, retryAfterS: 2 });
}

/** Whether a statement gave up waiting for what another transaction holds. */
export function isLockedOut(error: unknown): boolean {
  return codeOf(error) === "55P03";
}
