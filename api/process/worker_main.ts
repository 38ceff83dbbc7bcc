/** `npm run worker`: the worker as a process of its own. */

import { startWorker } from "../worker.ts";
import { runRole } from "./run_process.ts";

await runRole("worker", (config, logger) => startWorker({ config, logger }));
