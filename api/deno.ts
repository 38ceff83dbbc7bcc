/**
 * The same app for `deno serve api/deno.ts`. It takes the environment of `npm run api`, REDIS_URL
 * included; the address to listen on is Deno's own option (`--host`, `--port`).
 */
import pino from "pino";
import { openBus } from "#bus/open_bus.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import type { Fetch } from "#http/service.ts";
import { serveMetrics } from "#metrics/metrics_listener.ts";
import { createApp } from "./app.ts";
import { readApiConfig } from "./config.ts";
import { openMigratedSql } from "./process/server.ts";

const config = readApiConfig();
const logger = pino({ name: "api", level: config.logLevel });
const sql = await openMigratedSql(config);
const bus = await openBus({ redisUrl: config.redisUrl });
const metrics = createRequestMetrics();
const { fetch } = await createApp({ sql, bus, logger, config, now: () => new Date(), metrics });
const { port } = await serveMetrics({ host: config.bindAddress, ...config.metricsPort }, { api: metrics.registry });
logger.info({ port }, "metrics are served");

export default { fetch } satisfies { fetch: Fetch };
