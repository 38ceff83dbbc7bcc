/** `npm run loadtest -- streams`: readers of runs' event streams, on one transport after the other. */

import { streamsOptions } from "./streams_options.ts";
import { runStreams } from "./streams_run.ts";
import { measureTransports } from "./transports.ts";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function streams(args: readonly string[]): Promise<void> {
  const options = streamsOptions(args);
  const { subscribers, runs } = options;
  await measureTransports(
    { title: `streams, ${subscribers} readers of each of ${runs} runs`, options },
    (gateway, report) => runStreams(gateway, options, report),
  );
}
