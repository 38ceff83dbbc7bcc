/** What is said while the model thinks or tools run and nobody speaks: a caller who hears nothing for long believes that the line is dead. */
import type { Scheduler } from "../threads/scheduler.ts";
import { wordsFor } from "../words/words_for.ts";

/** Quiet that is filled: the first, the second, and each one after. */
const quietMs = [1200, 8000, 15_000] as const;
/** The same while the model has said nothing yet. */
const thinkingMs = [1500, 8000, 15_000] as const;
const lookMs = 100;

/** What is quiet, and how it is filled. */
export interface Silence {
  isQuiet(): boolean;
  fill(): Promise<void>;
  /** The model thinks, or tools run. */
  during: "thinking" | "tools";
}

export class Fillers {
  readonly #usual: string;
  readonly #ofTools: ReadonlyMap<string, string>;
  #news: string | undefined;

  /** @param ofTools what tools have of their own, by name */
  constructor(language: string, ofTools: ReadonlyMap<string, string> = new Map()) {
    this.#usual = wordsFor(language).filler;
    this.#ofTools = ofTools;
  }

  /** What is said in place of the next filler for tools: how far one has come. */
  say(news: string): void {
    this.#news = news;
  }

  /** For the time that these tools take; without any, for the model's own. */
  sayFor(calls: readonly { name: string }[]): string {
    const news = calls.length > 0 ? this.#news : undefined;
    if (news !== undefined) this.#news = undefined;
    const own = calls.map(({ name }) => this.#ofTools.get(name)).find((text) => text !== undefined);
    return `${news ?? own ?? this.#usual} `;
  }

  /** Calls `fill` each time that it has been quiet for long. @returns what ends it */
  whileQuiet(scheduler: Scheduler, { isQuiet, fill, during }: Silence): () => void {
    const limitsMs = during === "tools" ? quietMs : thinkingMs;
    let quietSinceMs = scheduler.nowMs();
    let filled = 0;
    let stop = scheduler.after(lookMs, look);
    function look(): void {
      const nowMs = scheduler.nowMs();
      if (!isQuiet()) quietSinceMs = nowMs;
      else if (nowMs - quietSinceMs >= (limitsMs[Math.min(filled, limitsMs.length - 1)] as number)) {
        filled += 1;
        quietSinceMs = nowMs;
        void fill();
      }
      stop = scheduler.after(lookMs, look);
    }
    return () => stop();
  }
}
