/** `npm run api`: the api as a process of its own. */
import { runRole } from "./run_process.ts";
import { startApi } from "./server.ts";

await runRole("api", (config, logger) => startApi({ config, logger }));
