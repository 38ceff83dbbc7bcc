/** Starts the api as a server: the app, its stores where none are given, and an HTTP listener. */
import type { Registry } from "prom-client";
import type { Bus } from "#bus/bus.ts";
import { openBus } from "#bus/open_bus.ts";
import type { TrustedProxies } from "#contracts/client_address.ts";
import type { PriceTable } from "#contracts/usage.ts";
import type { Logger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import type { LiveKitSettings } from "#outbound/livekit.ts";
import { awaitSchema } from "#store/awaited_schema.ts";
import { createEncryption } from "#store/encryption.ts";
import { prepareJobs } from "#store/jobs.ts";
import { migrate } from "#store/migrations.ts";
import { requireDirect, requireFitForApi } from "#store/pooler.ts";
import { openSql, type SqlPool } from "#store/sql.ts";
import { sealStoredHeaders } from "#voice/header_secrets.ts";
import { createApp } from "../app.ts";
import { drainable } from "./drain.ts";
import { listen } from "./http_listener.ts";
import { exportProcess } from "./process_metrics.ts";

export interface StartApiOptions {
  config: {
    bindAddress: string;
    apiPort: number;
    publicUrl: string;
    internalSecret: string;
    trustedProxies?: TrustedProxies;
    encryptionKey: string;
    jwtSecret: string;
    requireEmailVerification: boolean;
    appDomain: string;
    allowPrivateAddresses: boolean;
    liveKit?: LiveKitSettings | undefined;
    /** What vendors charge; their list prices when absent. */
    prices?: PriceTable;
    /** Seconds that it serves on, not ready, once it is closed; 0 when absent. */
    shutdownDelayS?: number;
    databaseUrl?: string;
    /** Of a database that this start opens: whether it migrates it or waits for somebody to. */
    migrate?: "start" | "never";
    redisUrl?: string | undefined;
  };
  /** Opened from `config.databaseUrl`, and migrated, when absent. */
  sql?: SqlPool;
  /** Opened from `config.redisUrl` when absent. */
  bus?: Bus;
  logger: Logger;
}

export interface RunningApi {
  url: string;
  port: number;
  /** For whoever serves them. */
  metrics: Registry;
  /** Serves on for `shutdownDelayS`, finishes the requests under way, then closes what this start opened. */
  close(): Promise<void>;
}

export async function startApi({ config, logger, ...given }: StartApiOptions): Promise<RunningApi> {
  const sql = given.sql ?? (await openMigratedSql(config));
  const bus = given.bus ?? (await openBus({ redisUrl: config.redisUrl }));
  const metrics = createRequestMetrics();
  exportProcess(metrics.registry, { role: "api", sql, bus });
  await sealStoredHeaders(sql, createEncryption(config.encryptionKey));
  const app = await createApp({ sql, bus, logger, config, now: () => new Date(), metrics });
  const { fetch, drain } = drainable(app.fetch);
  const listener = await listen(fetch, { host: config.bindAddress, port: config.apiPort });
  logger.info({ url: listener.url }, "api listens");
  return {
    url: listener.url,
    port: listener.port,
    metrics: metrics.registry,
    async close() {
      await drain((config.shutdownDelayS ?? 0) * 1000);
      await listener.close();
      await app.close();
      if (!given.bus) await bus.close();
      if (!given.sql) await sql.end({ timeout: 5 });
    },
  };
}

/** How long a start that does not migrate waits for `npm run migrate`; a supervisor then starts it again. */
const schemaPatienceMs = 60_000;

interface OpenMigratedSqlOptions {
  databaseUrl?: string;
  migrate?: "start" | "never";
  /** Who cannot share connections with others, as in "a worker"; an api can. */
  needsSession?: string;
}

/**
 * @throws Error without a url, MigrationError when code and database disagree, PoolerError when the address
 * leads through one and should not, or does not say so
 */
export async function openMigratedSql(config: OpenMigratedSqlOptions): Promise<SqlPool> {
  const { databaseUrl, needsSession } = config;
  if (!databaseUrl) throw new Error("Cannot open the database: expected DATABASE_URL");
  const sql = openSql({ databaseUrl });
  try {
    if (needsSession) await requireDirect(sql, { databaseUrl, who: needsSession });
    else await requireFitForApi(sql, { databaseUrl, migrates: config.migrate !== "never" });
    if (config.migrate === "never") {
      await awaitSchema(sql, { patienceMs: schemaPatienceMs });
    } else {
      await migrate(sql);
      await prepareJobs(databaseUrl);
    }
  } catch (error) {
    await sql.end({ timeout: 5 });
    throw error;
  }
  return sql;
}
