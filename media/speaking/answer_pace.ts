/** Where answers wait: for a barge-in to be decided, for the link to come back, for room in the playout. */
import type { Answer, AnswerGate } from "../answering/answer.ts";

/** What an answer under way waits for. */
export interface Played {
  readonly answer: Answer;
  /** A barge-in holds it. */
  readonly held: boolean;
}

export class AnswerPace {
  readonly #playout: { hasRoom(): boolean; isQuiet(): boolean };
  #waiting: (() => void)[] = [];
  isTextOnly = false;
  /** The link is lost. */
  isPaused = false;

  constructor(playout: { hasRoom(): boolean; isQuiet(): boolean }) {
    this.#playout = playout;
  }

  get isWaitedFor(): boolean {
    return this.#waiting.length > 0;
  }

  gateOf(played: Played): AnswerGate {
    const pace = this;
    const isHeldUp = () => !played.answer.isStopped && (played.held || pace.isPaused);
    return {
      get isSpoken() {
        return !pace.isTextOnly;
      },
      isQuiet: () => !isHeldUp() && pace.#playout.isQuiet(),
      async mayGoOn() {
        while (isHeldUp()) await pace.#change();
      },
      async mayPush() {
        while (isHeldUp() || (!played.answer.isStopped && !pace.#playout.hasRoom())) await pace.#change();
      },
    };
  }

  /** Resolves at the next `wake`. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What an answer may wait for has changed. */
  wake(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
