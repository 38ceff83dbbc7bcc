/** The gateway as a process of its own: `npm run gateway`. */
import { setTimeout as wait } from "node:timers/promises";
import { pino } from "pino";
import { openBus } from "#bus/open_bus.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { serveMetrics } from "#metrics/metrics_listener.ts";
import { ConfigError, type GatewayConfig, loadGatewayConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";

/** A terminal's Ctrl-C comes twice, directly and through npm: within this it is one. */
const sameSignalMs = 500;

async function main(config: GatewayConfig): Promise<void> {
  const logger = pino({ name: "gateway", level: config.logLevel ?? "info" });
  const bus = await openBus({ redisUrl: config.redisUrl });
  const { mediaThreads: threads, vad = "energy", world = {} } = config;
  const toolWorld = { api: { url: config.apiUrl, secret: config.internalSecret } };
  const media = await startWorkerPool({ threads, vad, world, toolWorld, logger });
  const gateway = await startGateway({ config, bus, media, logger });
  const metrics =
    config.metricsPort &&
    (await serveMetrics({ host: config.bindAddress, ...config.metricsPort }, { gateway: gateway.metrics }));
  if (metrics) logger.info({ port: metrics.port }, "metrics are served");

  let asked = 0;
  let askedAtMs = Number.NEGATIVE_INFINITY;
  const stop = async () => {
    const repeated = performance.now() - askedAtMs < sameSignalMs;
    askedAtMs = performance.now();
    if (repeated) return;
    asked += 1;
    // Asked again: no more waiting for calls. A third time: whatever hangs is left.
    if (asked > 2) process.exit(1);
    if (asked === 1) await Promise.all([gateway.drain(), wait((config.shutdownDelayS ?? 0) * 1000)]);
    await gateway.close();
    await metrics?.close();
    await media.close();
    await bus.close();
    process.exit(0);
  };
  process.on("SIGTERM", () => void stop());
  process.on("SIGINT", () => void stop());
}

try {
  await main(loadGatewayConfig(undefined, { separate: true }));
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
