/** What is said while tools run and nobody speaks: a caller who hears nothing for long believes that the line is dead. */
import type { Scheduler } from "../threads/scheduler.ts";
import { wordsFor } from "../words/words_for.ts";

/** Quiet that is filled: the first, the second, and each one after. */
const quietMs = [1200, 8000, 15_000] as const;
const lookMs = 100;

export class Fillers {
  readonly #usual: string;
  readonly #ofTools: ReadonlyMap<string, string>;

  /** @param ofTools what tools have of their own, by name */
  constructor(language: string, ofTools: ReadonlyMap<string, string> = new Map()) {
    this.#usual = wordsFor(language).filler;
    this.#ofTools = ofTools;
  }

  sayFor(calls: readonly { name: string }[]): string {
    const own = calls.map(({ name }) => this.#ofTools.get(name)).find((text) => text !== undefined);
    return `${own ?? this.#usual} `;
  }

  /** Calls `fill` each time that it has been quiet for long. @returns what ends it */
  whileQuiet(scheduler: Scheduler, isQuiet: () => boolean, fill: () => Promise<void>): () => void {
    let quietSinceMs = scheduler.nowMs();
    let filled = 0;
    let stop = scheduler.after(lookMs, look);
    function look(): void {
      const nowMs = scheduler.nowMs();
      if (!isQuiet()) quietSinceMs = nowMs;
      else if (nowMs - quietSinceMs >= (quietMs[Math.min(filled, quietMs.length - 1)] as number)) {
        filled += 1;
        quietSinceMs = nowMs;
        void fill();
      }
      stop = scheduler.after(lookMs, look);
    }
    return () => stop();
  }
}
