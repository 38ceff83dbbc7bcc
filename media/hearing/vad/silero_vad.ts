/** Voice activity by Silero's network: one copy of the weights a thread, one state a call. */
import {
  contextSamples,
  createPlainForward,
  createWasmForward,
  loadSileroWeights,
  type SileroForward,
  stateUnits,
  windowSamples,
} from "./silero_forward.ts";
import type { Vad } from "./vad.ts";

let forward: SileroForward | undefined;

/** The thread's network, loaded at its first use (some milliseconds). */
function network(): SileroForward {
  if (forward) return forward;
  const weights = loadSileroWeights();
  try {
    forward = createWasmForward(weights);
  } catch {
    forward = createPlainForward(weights); // slower by several times, equal in what it answers
  }
  return forward;
}

/** @param run the network to use; the thread's own without it */
export function createSileroVad(run: SileroForward = network()): Vad {
  const input = new Float32Array(contextSamples + windowSamples);
  const state = { hidden: new Float32Array(stateUnits), cell: new Float32Array(stateUnits) };
  return {
    windowSamples,
    sampleRateHz: 16_000,
    process(window) {
      if (window.length !== windowSamples) {
        throw new RangeError(`Cannot detect speech in ${window.length} samples: expected ${windowSamples}`);
      }
      input.copyWithin(0, windowSamples);
      for (let i = 0; i < windowSamples; i++) input[contextSamples + i] = window[i]! / 32_768;
      return run(input, state);
    },
    reset() {
      input.fill(0);
      state.hidden.fill(0);
      state.cell.fill(0);
    },
    close() {},
  };
}
