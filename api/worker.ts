/**
 * The worker: sweeps what other processes left behind and runs the scheduled jobs. Any number may
 * run beside each other.
 */
import type { Bus } from "#bus/bus.ts";
import { openBus } from "#bus/open_bus.ts";
import type { Logger } from "#http/logger.ts";
import { platformErrorResponse } from "#http/platform_face.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { createService } from "#http/service.ts";
import { purgeExpiredCredentials } from "#identity/purge.ts";
import { sweepCalls } from "#platform/call_sweeper.ts";
import { releaseStuckJobs, startJobs } from "#store/jobs.ts";
import { type Sql, unavailableStore } from "#store/sql.ts";
import { healthRoutes } from "./health.ts";
import { listen } from "./http_listener.ts";
import { startPeriodic } from "./periodic.ts";
import { openMigratedSql } from "./server.ts";

const sweepIntervalMs = 5000;
const stuckJobsIntervalMs = 60_000;

export interface StartWorkerOptions {
  config: {
    bindAddress: string;
    /** Health and metrics. */
    workerPort: number;
    databaseUrl: string;
    redisUrl?: string | undefined;
  };
  sql?: Sql;
  bus?: Bus;
  logger: Logger;
}

export interface RunningWorker {
  url: string;
  port: number;
  /** Finishes what is under way and releases every connection that the worker opened. Before Postgres stops. */
  close(): Promise<void>;
}

export async function startWorker({ config, logger, ...given }: StartWorkerOptions): Promise<RunningWorker> {
  const sql = given.sql ?? (await openMigratedSql(config.databaseUrl));
  const bus = given.bus ?? (await openBus({ redisUrl: config.redisUrl }));
  const now = () => new Date();
  const metrics = createRequestMetrics();
  const fetch = createService({
    routes: healthRoutes({ sql, bus }),
    documents: {
      "/metrics": async () =>
        new Response(await metrics.registry.metrics(), { headers: { "content-type": metrics.registry.contentType } }),
    },
    face: platformErrorResponse,
    translateError: unavailableStore,
    logger,
    metrics,
    newRequestId: () => crypto.randomUUID(),
  });
  const listener = await listen(fetch, { host: config.bindAddress, port: config.workerPort });
  const jobs = await startJobs({
    databaseUrl: config.databaseUrl,
    tasks: { purge_expired_credentials: () => purgeExpiredCredentials({ sql, now }) },
    schedule: { purge_expired_credentials: "17 * * * *" },
    concurrency: 4,
    onLog: (level, message) => {
      if (level === "error" || level === "warning") logger.warn({ message }, "job queue");
    },
  });
  const onError = (err: unknown) => logger.error({ err }, "sweep failed; the next round tries again");
  const sweeper = startPeriodic({
    intervalMs: sweepIntervalMs,
    onError,
    run: async () => {
      const { closed, expired } = await sweepCalls({ sql, bus, now });
      if (closed > 0) logger.warn({ closed }, "closed calls whose gateway is gone");
      if (expired > 0) logger.debug({ expired }, "expired reservations");
    },
  });
  const rescuer = startPeriodic({ intervalMs: stuckJobsIntervalMs, onError, run: () => releaseStuckJobs(sql, now()) });
  logger.info({ url: listener.url }, "worker runs");
  return {
    url: listener.url,
    port: listener.port,
    async close() {
      await Promise.all([sweeper.stop(), rescuer.stop(), jobs.stop(), listener.close()]);
      if (!given.bus) await bus.close();
      if (!given.sql) await sql.end({ timeout: 5 });
    },
  };
}
