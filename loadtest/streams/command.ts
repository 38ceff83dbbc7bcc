/** `npm run loadtest -- streams`: readers of runs' event streams, on one transport after the other. */

import { measureTransports } from "../kit/transports.ts";
import { streamsOptions } from "./options.ts";
import { runStreams } from "./run.ts";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function streams(args: readonly string[]): Promise<void> {
  const options = streamsOptions(args);
  const { subscribers, runs } = options;
  await measureTransports(
    { title: `streams, ${subscribers} readers of each of ${runs} runs`, options },
    (gateway, report) => runStreams(gateway, options, report),
  );
}
