/**
 * The same app for `deno serve api/deno.ts`. It takes the environment of `npm run api`, REDIS_URL
 * included; the address to listen on is Deno's own option (`--host`, `--port`).
 */
import pino from "pino";
import { openBus } from "#bus/open_bus.ts";
import type { Fetch } from "#http/service.ts";
import { createApp } from "./app.ts";
import { readApiConfig } from "./config.ts";
import { openMigratedSql } from "./process/server.ts";

const config = readApiConfig();
const logger = pino({ name: "api", level: config.logLevel });
const sql = await openMigratedSql(config);
const bus = await openBus({ redisUrl: config.redisUrl });
const { fetch } = await createApp({ sql, bus, logger, config, now: () => new Date() });

export default { fetch } satisfies { fetch: Fetch };
