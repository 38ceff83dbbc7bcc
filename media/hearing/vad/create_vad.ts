/** The detectors to choose from. */
import { createEnergyVad } from "./energy_vad.ts";
import { createSileroVad } from "./silero_vad.ts";
import type { Vad } from "./vad.ts";

export const vadEngines = ["energy", "silero"] as const;
export type VadEngine = (typeof vadEngines)[number];

export function createVad(engine: VadEngine): Vad {
  return engine === "silero" ? createSileroVad() : createEnergyVad();
}
