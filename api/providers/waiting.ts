/** Waits of the built-in providers. Time comes from `deps`, so that a test or a virtual clock owns it. */
import { setTimeout as delay } from "node:timers/promises";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { ProviderError } from "./provider_error.ts";

export interface WaitDeps {
  /** Resolves after `ms` milliseconds, or settles either way as soon as `signal` is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Real time. */
export const realWaits: WaitDeps = {
  async sleep(ms, signal) {
    await delay(ms, undefined, { signal });
  },
};

/** Waits `ms` milliseconds. False when `signal` was aborted before or meanwhile; never throws for an abort. */
export async function waitFor(deps: WaitDeps, ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  if (ms <= 0) return true;
  try {
    await deps.sleep(ms, signal);
  } catch (cause) {
    if (!signal.aborted) throw cause;
  }
  return !signal.aborted;
}

/** Settles when `signal` is aborted and not before. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Turns, counted from 1, on which a built-in provider misbehaves for the sake of a test. */
export interface Faults {
  fail_on: readonly number[];
  hang_on: readonly number[];
}

/**
 * Plays the faults that are set for a turn. False when the turn hung and was then aborted.
 * @param turnIndex 0, 1, 2 …
 * @throws ProviderError on a turn of `fail_on`
 */
export async function passFaults(
  stage: ModelStage,
  faults: Faults,
  turnIndex: number,
  signal: AbortSignal,
): Promise<boolean> {
  const turn = turnIndex + 1;
  if (faults.fail_on.includes(turn))
    throw new ProviderError(stage, `Turn ${turn} is listed in ${stage}.options.fail_on`);
  if (!faults.hang_on.includes(turn)) return !signal.aborted;
  await aborted(signal);
  return false;
}
