/** Voice activity: how likely a window of 16 kHz audio is speech. */
import { createEnergyVad } from "./energy_vad.ts";
import { createSileroVad } from "./silero_vad.ts";

export const vadEngines = ["energy", "silero"] as const;
export type VadEngine = (typeof vadEngines)[number];

/** One call's detector: it remembers what it heard. */
export interface Vad {
  readonly windowSamples: number;
  readonly sampleRateHz: 16000;
  /** Probability of speech, 0…1, in a window of exactly `windowSamples`. */
  process(window: Int16Array): number;
  /** Forgets the stream: what follows is a new one. */
  reset(): void;
  close(): void;
}

export function createVad(engine: VadEngine): Vad {
  return engine === "silero" ? createSileroVad() : createEnergyVad();
}
