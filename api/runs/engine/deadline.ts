/**
 * Statements that are never answered: after some breaks of a connection the client settles them neither
 * way. Whoever has others wait in line behind one gives it up, and lets the lease decide whose the run is.
 */
export const statementMsMax = 30_000;

/** @throws Error when `work` has not settled in time; what it still does is fenced by the run's epoch */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Postgres has not answered for ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
