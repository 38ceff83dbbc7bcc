/** `npm run worker`: the worker as a process of its own. */
import { runRole } from "./role.ts";
import { startWorker } from "./worker.ts";

await runRole("worker", (config, logger) => startWorker({ config, logger }));
