/**
 * PgBouncer and its like between us and Postgres, sharing connections by the transaction. An api works
 * over one when its `DATABASE_URL` says `?prepare=false`: statements are not prepared, and the limits of a
 * connection are set in each transaction, as the connection is somebody else's in between. Workers hear
 * of jobs by LISTEN, and migrations hold a lock of the session: they go straight to Postgres.
 */
import { type Sql, usesPooler } from "./sql.ts";

/** The address of the database does not fit who uses it. */
export class PoolerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PoolerError";
  }
}

const hint = "?prepare=false in DATABASE_URL, MIGRATE=never, and npm run migrate straight to Postgres";

/**
 * Makes sure that an api's address says so where a pooler is in between.
 * @throws PoolerError with what is expected
 */
export async function requireFitForApi(sql: Sql, config: { databaseUrl: string; migrates: boolean }): Promise<void> {
  if (usesPooler(config.databaseUrl)) {
    if (config.migrates) throw new PoolerError(`Cannot migrate through a pooler: expected ${hint}`);
  } else if (await isPoolerBetween(sql)) {
    throw new PoolerError(`Cannot use the pooler that DATABASE_URL leads to: expected ${hint}`);
  }
}

/** @param who names the role, as in "a worker" @throws PoolerError when a pooler is in between */
export async function requireDirect(
  sql: Sql,
  { databaseUrl, who }: { databaseUrl: string; who: string },
): Promise<void> {
  if (!usesPooler(databaseUrl) && !(await isPoolerBetween(sql))) return;
  throw new PoolerError(
    `Cannot start ${who} behind a pooler: it needs a session of its own, for LISTEN and locks; expected a DATABASE_URL straight to Postgres`,
  );
}

/** A pooler gives out numbers of its own for the backend, and refuses settings that it does not know. */
async function isPoolerBetween(sql: Sql): Promise<boolean> {
  try {
    const rows = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    return rows[0]?.pid !== rows.state.pid;
  } catch (error) {
    if (/unsupported startup parameter/.test(String(error))) return true;
    throw error;
  }
}
