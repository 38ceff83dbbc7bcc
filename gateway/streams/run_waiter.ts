/** One request that waits for a run to end or to rest: a cursor on the run's feed, and nothing else. */
import { isTerminalEvent } from "#contracts/run_event.ts";
import type { FeedReader, RunFeed } from "./run_feed.ts";

/** Frames that are looked at in one go. */
const sliceBytesMax = 256 * 1024;

/** `late`: the time is over. `left`: the client is gone, or the run is. */
export type WaitEnd = "happened" | "late" | "left";

export interface WaiterOptions {
  feed: RunFeed;
  /** Events up to here do not count. */
  cursor: number;
  until: "end" | "rest";
  /** On `performance.now()`'s clock. */
  dueMs: number;
  /** Once. */
  onEnd(end: WaitEnd): void;
  onError(error: unknown): void;
}

export class RunWaiter implements FeedReader {
  readonly #options: WaiterOptions;
  #cursor: number;
  #isLooking = false;
  #hasNews = false;
  #hasFailed = false;
  #isOver = false;

  constructor(options: WaiterOptions) {
    this.#options = options;
    this.#cursor = options.cursor;
    options.feed.readers.add(this);
  }

  wake(): void {
    this.#hasNews = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#look()
      .catch((error: unknown) => {
        this.#hasFailed = true;
        this.#options.onError(error);
      })
      .finally(() => {
        this.#isLooking = false;
      });
  }

  tick(nowMs: number): void {
    if (nowMs >= this.#options.dueMs) this.end("late");
    else if (this.#hasFailed) this.wake();
  }

  end(end: WaitEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.feed.readers.delete(this);
    this.#options.onEnd(end);
  }

  async #look(): Promise<void> {
    while (this.#hasNews && !this.#isOver) {
      this.#hasNews = false;
      this.#hasFailed = false;
      const frames = await this.#options.feed.framesAfter(this.#cursor, sliceBytesMax);
      if (!frames) return this.end("left");
      for (const { id, type } of frames) {
        this.#cursor = id;
        if (this.#isAwaited(type)) return this.end("happened");
      }
      this.#hasNews ||= frames.length > 0;
    }
  }

  #isAwaited(type: string): boolean {
    return isTerminalEvent(type) || (this.#options.until === "rest" && type === "input.requested");
  }
}
