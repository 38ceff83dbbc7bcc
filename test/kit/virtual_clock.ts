/** A clock that tests own: beats, deadlines and sleeps happen when it is moved, in order, and nothing else takes time. */

import { BeatList, beatMs, type Scheduler } from "#media/threads/scheduler.ts";
import type { WaitDeps } from "#providers/provider.ts";

export class VirtualClock implements Scheduler, WaitDeps {
  readonly #list = new BeatList();
  readonly #sleepers = new Set<{ dueMs: number; wake: () => void }>();
  #nowMs: number;
  #nextBeatMs: number;

  constructor(startMs = 0) {
    this.#nowMs = startMs;
    this.#nextBeatMs = startMs + beatMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  onBeat(run: (nowMs: number) => void): () => void {
    return this.#list.onBeat(run);
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#list.at(this.#nowMs + delayMs, run);
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const onAbort = () => {
        this.#sleepers.delete(sleeper);
        wake();
      };
      const wake = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const sleeper = { dueMs: this.#nowMs + ms, wake };
      this.#sleepers.add(sleeper);
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Moves on by `ms`, stopping at each beat and each sleeper's end to let everything that is ready run. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const wakeMs = Math.min(...[...this.#sleepers].map(({ dueMs }) => dueMs));
      const nextMs = Math.min(this.#nextBeatMs, wakeMs);
      if (nextMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, nextMs);
      for (const sleeper of this.#sleepers) {
        if (sleeper.dueMs > this.#nowMs) continue;
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
      await settle();
      if (this.#nextBeatMs > this.#nowMs) continue;
      this.#nextBeatMs += beatMs;
      this.#list.beat(this.#nowMs);
      await settle();
    }
    this.#nowMs = untilMs;
  }
}

/** Lets every promise that is ready run to its end: microtasks are all done before the next immediate. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
