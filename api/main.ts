/** `npm run api`: the api as a process of its own. */
import { runRole } from "./role.ts";
import { startApi } from "./server.ts";

await runRole("api", (config, logger) => startApi({ config, logger }));
