/** A bounded queue between the model and text to speech. Policy when full: `put` waits, so the model is pulled no further. */
import type { Pcm } from "#providers/provider.ts";

/** Something to be said in one go: text, or audio with its text. */
export interface Clause {
  text: string;
  audio?: Pcm;
  /** Said so that a wait is not silent. */
  isFiller?: true;
}

export const clausesMax = 16;

export class ClauseQueue {
  readonly #clauses: Clause[] = [];
  #closed = false;
  #wake: (() => void) | undefined;
  #wakeProducer: (() => void) | undefined;

  /** Resolves when the clause has a place. One producer. */
  async put(clause: Clause): Promise<void> {
    while (this.#clauses.length >= clausesMax && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#wakeProducer = resolve;
      });
    }
    if (this.#closed) return;
    this.#clauses.push(clause);
    this.#wake?.();
  }

  /** The next clause; undefined when the queue is closed and empty. One consumer. */
  async take(): Promise<Clause | undefined> {
    while (this.#clauses.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const clause = this.#clauses.shift();
    this.#wakeProducer?.();
    return clause;
  }

  /** Nothing more comes; what is in it can still be taken. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
    this.#wakeProducer?.();
  }
}
