/**
 * Statements that are never answered: after some breaks of a connection the client settles them neither
 * way. Whoever has others wait in line behind one gives it up, and lets the lease decide whose the run is.
 */
const statementMsMax = 30_000;

/** Begins to count, and calls back when the time is over. @returns what stops the count */
export type Deadline = (onLate: () => void) => () => void;

export function deadlineAfter(ms: number): Deadline {
  return (onLate) => {
    const timer = setTimeout(onLate, ms);
    return () => clearTimeout(timer);
  };
}

export const statementDeadline: Deadline = deadlineAfter(statementMsMax);

/** @throws Error when `work` has not settled in time; what it still does is fenced by the run's epoch */
export async function within<T>(deadline: Deadline, work: Promise<T>): Promise<T> {
  let stop: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    stop = deadline(() => reject(new Error("Postgres has not answered in time")));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    stop();
  }
}
