/** Time limits of the stages. A stage that hangs is left behind and never waited for. */
import type { CallConfig, ModelSettings, ModelStage } from "#contracts/voice_agent.ts";
import { firstSignMsOf } from "#providers/stages.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { unlessAborted } from "../threads/unless_aborted.ts";

/** How long each stage may give no sign before it has failed. */
export interface StageLimits {
  sttMs: number;
  llmMs: number;
  ttsMs: number;
}

/** Together they let a caller hear an answer or an apology within some seconds of the end of a turn. */
const usualLimits: StageLimits = { sttMs: 5000, llmMs: 6000, ttsMs: 5000 };

/** The limits of a call. A provider that is known to be slow has `first_byte_timeout_ms` among its options; fallbacks take their time too. */
export function stageLimitsFor({ stt, llm, tts }: Pick<CallConfig, "stt" | "llm" | "tts">): StageLimits {
  const limitOf = (stage: ModelStage, settings: ModelSettings | undefined, usualMs: number) => {
    const all = settings ? [settings, ...(settings.fallbacks ?? [])] : [];
    const own = all.at(-1)?.options.first_byte_timeout_ms;
    const othersMs = all.slice(0, -1).reduce((sumMs, one) => sumMs + firstSignMsOf(stage, one), 0);
    return othersMs + (typeof own === "number" ? own : usualMs);
  };
  return {
    sttMs: limitOf("stt", stt, usualLimits.sttMs),
    llmMs: limitOf("llm", llm, usualLimits.llmMs),
    ttsMs: limitOf("tts", tts, usualLimits.ttsMs),
  };
}

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
  let stopClock = () => {};
  const late = new Promise<never>((_, reject) => {
    stopClock = scheduler.after(timeoutMs, () => reject(new StageTimeoutError(timeoutMs)));
  });
  try {
    return await unlessAborted(Promise.race([promise, late]), signal);
  } finally {
    stopClock();
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
