/**
 * Events of one producer for one reader, in order. `put` does not wait: what bounds the events that
 * wait here is what holds the producer back, and a reader that takes each at once.
 */
export class EventStream<T> implements AsyncIterable<T> {
  readonly #events: T[] = [];
  #wake: (() => void) | undefined;
  #end: { cause?: unknown } | undefined;

  put(event: T): void {
    this.#events.push(event);
    this.#wake?.();
  }

  /** Nothing more comes. With a `cause` the reader is thrown it after the last event. */
  end(cause?: unknown): void {
    this.#end ??= cause === undefined ? {} : { cause };
    this.#wake?.();
  }

  /** Ends it at once: what waits here is dropped. */
  cancel(): void {
    this.#events.length = 0;
    this.end();
  }

  /** What is there already, for a reader that cannot wait a turn for it. */
  *ready(): Generator<T> {
    for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) yield event;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      // Not `yield* this.ready()`: its end takes a turn, in which an event would wake nobody.
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) yield event;
      if (this.#end) {
        if ("cause" in this.#end) throw this.#end.cause;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
