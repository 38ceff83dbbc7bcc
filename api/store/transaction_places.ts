/**
 * Who may begin a transaction now. There are fewer places than connections, so that a transaction
 * never holds the last one: single statements always find a connection, and who waits for a place
 * waits in order and for a bounded time.
 */
import { ApiError } from "#contracts/errors.ts";

export interface TransactionPlaces {
  /** Does the work in a place of its own. @throws ApiError unavailable when none is free in time */
  within<T>(work: () => Promise<T>): Promise<T>;
  /** For figures. */
  taken(): number;
  waiting(): number;
}

/** More than this do not wait: whoever comes then is told so at once. */
const waitingMax = 1000;
const retryAfterS = 2;

export function createTransactionPlaces({
  places,
  waitMsMax,
}: {
  places: number;
  waitMsMax: number;
}): TransactionPlaces {
  /** First come, first served: a set goes by the order of insertion. */
  const waiting = new Set<() => void>();
  let free = places;

  const take = (): Promise<void> | undefined => {
    if (free > 0) {
      free -= 1;
      return undefined;
    }
    if (waiting.size >= waitingMax) throw refusal(`${waitingMax} wait for a transaction already`);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(enter);
        reject(refusal(`no transaction ended within ${waitMsMax} ms`));
      }, waitMsMax);
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      waiting.add(enter);
    });
  };

  const leave = () => {
    const [next] = waiting;
    if (!next) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  };

  return {
    taken: () => places - free,
    waiting: () => waiting.size,
    async within(work) {
      await take();
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}

const refusal = (why: string) => new ApiError("unavailable", { retryAfterS, cause: new Error(why) });
