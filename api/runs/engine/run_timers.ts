/** The timers of one executing run: all of them end with it. */

/** Longest time-out of a JavaScript timer. */
const timerMsMax = 2 ** 31 - 1;

export interface RunTimers {
  /** @returns ends the wait early. What is further away than a timer reaches is left to the sweeper, or to a later claim. */
  after(delayMs: number, act: () => void): () => void;
  clear(): void;
}

export function createRunTimers(): RunTimers {
  const timers = new Set<NodeJS.Timeout>();
  return {
    after(delayMs, act) {
      if (delayMs > timerMsMax) return () => undefined;
      const timer = setTimeout(
        () => {
          timers.delete(timer);
          act();
        },
        Math.max(0, delayMs),
      );
      timers.add(timer);
      return () => {
        clearTimeout(timer);
        timers.delete(timer);
      };
    },
    clear() {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}
