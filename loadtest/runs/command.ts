/** `npm run loadtest -- runs`: runs of a three-node workflow, in the background and streamed. */
import { measureTransports } from "../kit/transports.ts";
import { runsOptions } from "./options.ts";
import { runRuns } from "./run.ts";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function runs(args: readonly string[]): Promise<void> {
  const options = runsOptions(args);
  await measureTransports({ title: "runs of three nodes", options }, (gateway, report) =>
    runRuns(gateway, options, report),
  );
}
