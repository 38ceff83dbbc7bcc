/** Options of `npm run loadtest -- traces`. */
import { optionValues, type TransportName, transportsOf, whole } from "../kit/option_values.ts";

export interface TracesOptions {
  /** Spans in all, spread over the days. */
  spans: number;
  spansPerRequest: number;
  senders: number;
  days: number;
  lists: number;
  transports: readonly TransportName[];
  jsonPath: string | undefined;
}

export const tracesUsage = `npm run loadtest -- traces [options]
  --spans N          spans of 1 KiB in all (default 1000000, at most 10000000)
  --request N        spans of a request (default 512, at most 8192)
  --senders N        requests at once (default 8, at most 64)
  --days N           days that they are spread over (default 10, at most 29)
  --lists N          lists of one day that are timed (default 200, at most 10000)
  --transport T      uws (default), ws or both, one after the other
  --json FILE        write everything that was measured`;

/** @throws OptionsError */
export function tracesOptions(args: readonly string[]): TracesOptions {
  const values = optionValues(args, ["spans", "request", "senders", "days", "lists", "transport", "json"]);
  return {
    spans: whole("spans", values.spans, 1_000_000, 1000, 10_000_000),
    spansPerRequest: whole("request", values.request, 512, 1, 8192),
    senders: whole("senders", values.senders, 8, 1, 64),
    days: whole("days", values.days, 10, 1, 29),
    lists: whole("lists", values.lists, 200, 1, 10_000),
    transports: transportsOf(values.transport ?? "uws"),
    jsonPath: values.json,
  };
}
