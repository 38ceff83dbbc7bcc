/** Time limits of the stages. A stage that hangs is left behind and never waited for. */
import type { Scheduler } from "../threads/scheduler.ts";

/** A stage that gives no sign for this long has failed. */
export const sttTimeoutMs = 10_000;
export const llmTimeoutMs = 15_000;
export const ttsTimeoutMs = 10_000;

/** A stage gave no sign for too long. */
export class StageTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`No answer within ${timeoutMs} ms`);
    this.name = "StageTimeoutError";
  }
}

/**
 * Gives up on `promise` when `signal` is aborted or after `timeoutMs`.
 * @throws StageTimeoutError, or Error when it was aborted
 */
export async function within<T>(
  promise: Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<T> {
  let cancel = () => {};
  const givenUp = new Promise<never>((_, reject) => {
    const stop = scheduler.after(timeoutMs, () => reject(new StageTimeoutError(timeoutMs)));
    const onAbort = () => reject(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    cancel = () => {
      stop();
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) onAbort();
  });
  // The loser of the race may still reject later: nobody waits for it any more.
  promise.catch(() => {});
  try {
    return await Promise.race([promise, givenUp]);
  } finally {
    cancel();
  }
}

/** Pulls a stage's stream, each step bounded in time. */
export async function* pull<T>(
  stream: AsyncIterable<T>,
  timeoutMs: number,
  signal: AbortSignal,
  scheduler: Scheduler,
): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      const next = await within(iterator.next(), timeoutMs, signal, scheduler);
      isDone = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    if (!isDone) iterator.return?.()?.catch(() => {});
  }
}

/** Runs `stage` under a signal that is aborted with `signal`, and when the stage has ended or failed. */
export async function underOwnSignal(signal: AbortSignal, stage: (own: AbortSignal) => Promise<void>): Promise<void> {
  const own = new AbortController();
  const follow = () => own.abort();
  if (signal.aborted) own.abort();
  signal.addEventListener("abort", follow, { once: true });
  try {
    await stage(own.signal);
  } finally {
    signal.removeEventListener("abort", follow);
    own.abort();
  }
}
