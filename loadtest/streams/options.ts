/** Options of `npm run loadtest -- streams`, checked and bounded. */
import { optionValues, type TransportName, transportsOf, whole } from "../kit/option_values.ts";

export interface StreamsOptions {
  /** Readers of each run. */
  subscribers: number;
  runs: number;
  /** Events a second of each run, at which latency is measured. */
  eventsPerS: number;
  /** The same where deliveries are to be as many as there can be; 0 leaves that out. */
  peakEventsPerS: number;
  /** How long each run speaks. */
  seconds: number;
  /** Idle connections of the memory figure; 0 leaves it out. */
  held: number;
  /** Readers that stop reading; 0 leaves them out. */
  stalled: number;
  /** Clients that come back at once to a run that is over; 0 leaves them out. */
  replayers: number;
  transports: readonly TransportName[];
  jsonPath: string | undefined;
}

export const streamsUsage = `npm run loadtest -- streams [options]
  --subscribers N    readers of each run (default 1000, at most 10000)
  --runs N           runs at once (default 1, at most 1000; with the readers at most 10000 connections)
  --events-per-s N   events a second of each run where latency is measured (default 20, at most 1000)
  --peak-events-per-s N   the same where deliveries are counted (default 400, at most 5000; 0: not)
  --seconds N        how long each run speaks (default 5, at most 60)
  --held N           idle connections, for the memory of one (default 2000, at most 16000; 0: none)
  --stalled N        readers that stop reading (default 200, at most 5000; 0: none)
  --replayers N      clients that come back at once when the run is over (default 20, at most 1000; 0: none)
  --transport T      uws, ws or both (default), one after the other
  --json FILE        write everything that was measured`;

const names = [
  "subscribers",
  "runs",
  "events-per-s",
  "peak-events-per-s",
  "seconds",
  "held",
  "stalled",
  "replayers",
  "transport",
  "json",
] as const;

/** @throws OptionsError */
export function streamsOptions(args: readonly string[]): StreamsOptions {
  const values = optionValues(args, names);
  const subscribers = whole("subscribers", values.subscribers, 1000, 1, 10_000);
  return {
    subscribers,
    runs: whole("runs", values.runs, 1, 1, Math.min(1000, Math.floor(10_000 / subscribers))),
    eventsPerS: whole("events-per-s", values["events-per-s"], 20, 1, 1000),
    peakEventsPerS: whole("peak-events-per-s", values["peak-events-per-s"], 400, 0, 5000),
    seconds: whole("seconds", values.seconds, 5, 1, 60),
    held: whole("held", values.held, 2000, 0, 16_000),
    stalled: whole("stalled", values.stalled, 200, 0, 5000),
    replayers: whole("replayers", values.replayers, 20, 0, 1000),
    transports: transportsOf(values.transport),
    jsonPath: values.json,
  };
}
