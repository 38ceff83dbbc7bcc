/**
 * A pool whose transactions stand alone: a statement or a transaction that the pool is asked for
 * while a transaction waits for it fails, and says so. With enough such transactions at once each
 * would wait for a connection that another one holds.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type postgres from "postgres";
import type { Sql, SqlPool } from "#store/sql.ts";

/** The pool as the product gets it in tests. Fragments may still be made by it: they run on the transaction. */
export function withLoneTransactions(pool: SqlPool): SqlPool {
  const inside = new AsyncLocalStorage<true>();
  const refuse = () => {
    throw new Error("Cannot use a second connection inside of a transaction: expected the transaction's client");
  };
  const watched = <Made>(made: Made): Made => {
    // A thenable's job may run outside of the context in which it was made.
    const madeInside = inside.getStore();
    const query = made as { handle?: () => Promise<void>; reject?: (error: unknown) => void };
    const { handle, reject } = query;
    if (!handle || !reject) return made;
    query.handle = async function (this: typeof query) {
      if (!madeInside && !inside.getStore()) return handle.call(this);
      try {
        refuse();
      } catch (error) {
        reject(error);
      }
    };
    return made;
  };
  const call = pool as unknown as (...parts: unknown[]) => unknown;
  const tag = (...parts: unknown[]) => watched(call(...parts));
  const begin = (work: (transaction: postgres.TransactionSql) => Promise<unknown>) => {
    if (inside.getStore()) refuse();
    return pool.begin((transaction) => inside.run(true, () => work(transaction)));
  };
  const unsafe = (...parts: Parameters<Sql["unsafe"]>) => watched(pool.unsafe(...parts));
  return Object.assign(tag, pool, { begin, unsafe }) as unknown as SqlPool;
}
