/** Options of `npm run loadtest -- runs`. */
import { optionValues, type TransportName, transportsOf, whole } from "../kit/option_values.ts";

export interface RunsOptions {
  /** Background runs a second while the queue's wait is measured. */
  rate: number;
  /** How long at that rate, and how long streams are started. */
  seconds: number;
  /** Background runs as fast as they are taken. */
  burst: number;
  /** Streamed runs a second. */
  streamRate: number;
  transports: readonly TransportName[];
  jsonPath: string | undefined;
}

export const runsUsage = `npm run loadtest -- runs [options]
  --rate N           background runs a second, for the queue's wait (default 100, at most 5000)
  --seconds N        how long, and how long streams are started (default 5, at most 120)
  --burst N          background runs as fast as they are taken, for runs a second (default 2000, at most 100000)
  --stream-rate N    streamed runs a second, for the time to the first byte (default 50, at most 1000)
  --transport T      uws, ws or both (default), one after the other
  --json FILE        write everything that was measured`;

/** @throws OptionsError */
export function runsOptions(args: readonly string[]): RunsOptions {
  const values = optionValues(args, ["rate", "seconds", "burst", "stream-rate", "transport", "json"]);
  return {
    rate: whole("rate", values.rate, 100, 1, 5000),
    seconds: whole("seconds", values.seconds, 5, 1, 120),
    burst: whole("burst", values.burst, 2000, 1, 100_000),
    streamRate: whole("stream-rate", values["stream-rate"], 50, 1, 1000),
    transports: transportsOf(values.transport),
    jsonPath: values.json,
  };
}
