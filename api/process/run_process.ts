/** What the api's processes have in common: a log, and an end on a signal or when the work is done. */
import pino from "pino";
import type { Registry } from "prom-client";
import type { Logger } from "#http/logger.ts";
import { serveMetrics } from "#metrics/metrics_listener.ts";
import { privateAddressesWarning } from "#outbound/address_guard.ts";
import { survivesLostConnection } from "#store/lost_connection.ts";
import { type ApiConfig, ConfigError, readApiConfig } from "../config.ts";

/** A terminal's Ctrl-C comes twice, directly and through npm: within this it is one. */
const sameSignalMs = 500;

/**
 * Reads the configuration, starts the role, serves its figures, and closes it on SIGINT or SIGTERM; a second signal
 * ends the process at once.
 */
export async function runRole(
  name: string,
  start: (config: Readonly<ApiConfig>, logger: Logger) => Promise<{ metrics: Registry; close(): Promise<void> }>,
): Promise<void> {
  const config = readOrExit(readApiConfig);
  const logger = pino({ name, level: config.logLevel });
  if (config.allowPrivateAddresses) logger.warn({}, privateAddressesWarning);
  process.on(
    "unhandledRejection",
    survivesLostConnection((err) => logger.error({ err }, "lost a connection to Postgres")),
  );
  try {
    const role = await start(config, logger);
    const metrics = await serveMetrics({ host: config.bindAddress, ...config.metricsPort }, { [name]: role.metrics });
    logger.info({ port: metrics.port }, "metrics are served");
    let signals = 0;
    let lastAtMs = Number.NEGATIVE_INFINITY;
    const end = () => {
      const repeated = performance.now() - lastAtMs < sameSignalMs;
      lastAtMs = performance.now();
      if (repeated) return;
      signals += 1;
      if (signals > 1) process.exit(1);
      Promise.all([role.close(), metrics.close()]).then(
        () => process.exit(0),
        (err: unknown) => {
          logger.error({ err }, "did not stop cleanly");
          process.exit(1);
        },
      );
    };
    process.on("SIGINT", end);
    process.on("SIGTERM", end);
  } catch (err) {
    logger.fatal({ err }, "cannot start");
    process.exit(1);
  }
}

/** Reads the configuration, does the work and ends the process: with 1 when it failed, and the log says why. */
export async function runCommand<Config extends { logLevel: string }>(
  name: string,
  read: () => Config,
  work: (config: Config, logger: Logger) => Promise<void>,
): Promise<void> {
  const config = readOrExit(read);
  const logger = pino({ name, level: config.logLevel });
  try {
    await work(config, logger);
  } catch (err) {
    logger.fatal({ err }, "failed");
    process.exitCode = 1;
  }
}

function readOrExit<Config>(read: () => Config): Config {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
