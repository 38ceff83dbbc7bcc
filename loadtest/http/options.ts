/** Options of `npm run loadtest -- http`. */
import { optionValues, type TransportName, transportsOf, whole } from "../kit/option_values.ts";

export interface HttpOptions {
  connections: number;
  /** For each endpoint at each place. */
  seconds: number;
  transports: readonly TransportName[];
  jsonPath: string | undefined;
}

export const httpUsage = `npm run loadtest -- http [options]
  --connections N    clients that ask one after the other (default 32, at most 1000)
  --seconds N        for each endpoint at each place (default 3, at most 60)
  --transport T      of the gateway: uws, ws or both (default)
  --json FILE        write everything that was measured`;

/** @throws OptionsError */
export function httpOptions(args: readonly string[]): HttpOptions {
  const values = optionValues(args, ["connections", "seconds", "transport", "json"]);
  return {
    connections: whole("connections", values.connections, 32, 1, 1000),
    seconds: whole("seconds", values.seconds, 3, 1, 60),
    transports: transportsOf(values.transport),
    jsonPath: values.json,
  };
}
