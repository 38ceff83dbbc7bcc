/** Options of `npm run capacity`. */
import { availableParallelism, totalmem } from "node:os";
import { choice, optionValues, whole } from "../kit/option_values.ts";
import type { Demand } from "./plan.ts";

export interface CapacityOptions {
  demand: Demand;
  /** What is looked at as one machine. */
  machine: { cores: number; memoryGib: number };
  measure: boolean;
}

export const capacityUsage = `npm run capacity -- [options]
  --calls N              calls at once (default 1000)
  --streams N            readers of event streams at once (default 20000)
  --events-per-s N       events a second that each of them gets (default 1)
  --runs-per-s N         runs a second (default 200)
  --events-per-run N     events of a run (default 9: three nodes that stream no text)
  --retention-days N     how long runs are kept (default 30)
  --vad V                energy (default) or silero
  --cores N              of one machine that is to carry everything (default: this machine's)
  --memory-gib N         of the same
  --measure              measure the costs of runs and of idle roles here, and write them to loadtest/capacity/costs.json`;

/** @throws OptionsError */
export function capacityOptions(args: readonly string[]): CapacityOptions {
  const values = optionValues(
    args,
    [
      "calls",
      "streams",
      "events-per-s",
      "runs-per-s",
      "events-per-run",
      "retention-days",
      "vad",
      "cores",
      "memory-gib",
    ],
    ["measure"],
  );
  const gibHere = Math.max(1, Math.round(totalmem() / 1024 ** 3));
  return {
    demand: {
      calls: whole("calls", values.calls, 1000, 0, 10_000_000),
      streams: whole("streams", values.streams, 20_000, 0, 100_000_000),
      eventsPerS: whole("events-per-s", values["events-per-s"], 1, 0, 10_000),
      runsPerS: whole("runs-per-s", values["runs-per-s"], 200, 0, 1_000_000),
      eventsPerRun: whole("events-per-run", values["events-per-run"], 9, 2, 1_000_000),
      retentionDays: whole("retention-days", values["retention-days"], 30, 1, 3650),
      vad: choice("vad", values.vad ?? "energy", ["energy", "silero"]),
    },
    machine: {
      cores: whole("cores", values.cores, availableParallelism(), 1, 1024),
      memoryGib: whole("memory-gib", values["memory-gib"], gibHere, 1, 65_536),
    },
    measure: values.measure === true,
  };
}
