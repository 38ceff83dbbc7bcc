/** `npm run loadtest -- traces`: spans through the collector, lists of one day, and the memory of a download. */
import { measureTransports } from "../kit/transports.ts";
import { tracesOptions } from "./options.ts";
import { runTraces } from "./run.ts";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function traces(args: readonly string[]): Promise<void> {
  const options = tracesOptions(args);
  // The memory that a download takes is the api's and the gateway's: both are one process here.
  await measureTransports({ title: "traces", options, processes: { together: true } }, (gateway, report) =>
    runTraces(gateway, options, report),
  );
}
