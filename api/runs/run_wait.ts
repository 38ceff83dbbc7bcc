/** Waits for news of a run, in a process that has the bus. */
import type { Bus } from "#bus/bus.ts";
import { runTopic } from "#contracts/internal_runs.ts";

/** Messages over the bus may get lost. */
const lookAgainMs = 1000;

export interface RunWait<T> {
  runId: string;
  waitMs: number;
  /** Who waits goes away. */
  signal: AbortSignal;
  look(): Promise<T>;
  isEnough(found: T): boolean;
}

/**
 * What is found when it is enough, at the latest after `waitMs`. It listens before it looks, so that nothing
 * falls between; while the bus is away it looks again now and then.
 */
export async function lookUntil<T>(bus: Bus, { runId, waitMs, signal, look, isEnough }: RunWait<T>): Promise<T> {
  if (waitMs === 0) return look();
  let heard: () => void = () => undefined;
  const untilMs = performance.now() + waitMs;
  const left = aborted(signal);
  const subscribed = bus.subscribe(runTopic(runId), () => heard()).catch(() => undefined);
  await Promise.race([subscribed, timeout(lookAgainMs)]);
  try {
    for (;;) {
      const news = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const found = await look();
      const leftMs = untilMs - performance.now();
      if (isEnough(found) || leftMs <= 0 || signal.aborted) return found;
      await Promise.race([news, timeout(Math.min(leftMs, lookAgainMs)), left]);
    }
  } finally {
    void subscribed.then((unsubscribe) => unsubscribe?.()).catch(() => undefined);
  }
}

function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
