/**
 * One clock and one timer for all calls of a thread: a 10 ms beat for pacing, gaps and deadlines.
 * Input is never held for the beat: what arrives is processed on arrival.
 */
import { nowMs } from "../media_host.ts";

export const beatMs = 10;

export interface Scheduler {
  /** Milliseconds since the epoch, monotonic. */
  nowMs(): number;
  /** Calls `run` on every beat until the returned function is called. */
  onBeat(run: (nowMs: number) => void): () => void;
  /** Calls `run` once, on the first beat `delayMs` from now or later, unless the returned function is called before. */
  after(delayMs: number, run: () => void): () => void;
}

export interface RealScheduler extends Scheduler {
  close(): void;
}

/** What a beat must do: shared by the real scheduler and the virtual one of the tests. */
export class BeatList {
  readonly #listeners = new Set<(nowMs: number) => void>();
  readonly #deadlines = new Set<{ dueMs: number; run: () => void }>();

  get isEmpty(): boolean {
    return this.#listeners.size === 0 && this.#deadlines.size === 0;
  }

  onBeat(run: (nowMs: number) => void): () => void {
    this.#listeners.add(run);
    return () => this.#listeners.delete(run);
  }

  at(dueMs: number, run: () => void): () => void {
    const deadline = { dueMs, run };
    this.#deadlines.add(deadline);
    return () => this.#deadlines.delete(deadline);
  }

  beat(nowMs: number): void {
    for (const deadline of this.#deadlines) {
      if (deadline.dueMs > nowMs) continue;
      this.#deadlines.delete(deadline);
      deadline.run();
    }
    for (const run of this.#listeners) run(nowMs);
  }
}

/** What a beat is driven by: the thread's own clock and timers, or a test's. */
export interface BeatClock {
  nowMs(): number;
  /** Calls `run` once, `delayMs` from now, unless the returned function is called before. */
  wakeIn(delayMs: number, run: () => void): () => void;
}

const threadClock: BeatClock = {
  nowMs,
  wakeIn(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The thread's beat. It keeps to a grid, so that a late beat does not delay those after it. */
export function createScheduler({ nowMs, wakeIn }: BeatClock = threadClock): RealScheduler {
  const list = new BeatList();
  let stopTimer: (() => void) | undefined;
  let nextMs = 0;

  const arm = () => {
    if (stopTimer || list.isEmpty) return;
    nextMs = nowMs() + beatMs;
    stopTimer = wakeIn(beatMs, beat);
  };
  const beat = () => {
    stopTimer = undefined;
    const now = nowMs();
    list.beat(now);
    if (stopTimer || list.isEmpty) return;
    nextMs += beatMs;
    // After a stall the missed beats are skipped: pacing catches up by time, not by count.
    if (nextMs <= now) nextMs = now + beatMs - ((now - nextMs) % beatMs);
    stopTimer = wakeIn(Math.max(0, nextMs - nowMs()), beat);
  };

  return {
    nowMs,
    onBeat(run) {
      const stop = list.onBeat(run);
      arm();
      return stop;
    },
    after(delayMs, run) {
      const cancel = list.at(nowMs() + delayMs, run);
      arm();
      return cancel;
    },
    close() {
      stopTimer?.();
      stopTimer = undefined;
    },
  };
}
