/**
 * Everything in one process: Postgres, migrations, bootstrap, api, worker, media threads and
 * gateway, started in the order in which they need each other and stopped in the reverse.
 *
 *     data folder → Postgres → bus → LiveKit → api → bootstrap → worker → media → gateway
 *
 * The gateway comes last, so that who can reach it finds everything there.
 */
import { join } from "node:path";
import { type RunningApi, startApi } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import { openBus } from "#bus/open_bus.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import type { Logger } from "#http/logger.ts";
import { createSignInLink } from "#identity/sign_in_links.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { serveMetrics } from "#metrics/metrics_listener.ts";
import { privateAddressesWarning } from "#outbound/address_guard.ts";
import type { LiveKitSettings } from "#outbound/livekit.ts";
import { prepareJobs } from "#store/jobs.ts";
import { migrate } from "#store/migrations.ts";
import { openSql } from "#store/sql.ts";
import { bootstrap } from "./bootstrap.ts";
import type { StandaloneConfig } from "./config.ts";
import { holdDataDir, makeDataDir } from "./data_dir.ts";
import { startEmbeddedPostgres } from "./embedded_postgres.ts";
import { startLiveKitServer } from "./livekit_server.ts";
import { type HeldPort, holdPorts } from "./ports.ts";
import { endLeftoverClusters } from "./postgres_leftovers.ts";
import { ensureSecrets } from "./secrets.ts";

export interface Standalone {
  gateway: Gateway;
  gatewayUrl: string;
  apiUrl: string;
  /** The demo app by path; null where it was deleted. */
  appUrl: string | null;
  /** Where traces are sent, by path. */
  collectorUrl: string;
  workerUrl: string;
  /** What is not as usual here, a sentence each: another port, another transport, what lies about. */
  notes: string[];
  bootstrapFile: string;
  /** Signs a browser in, once, within an hour. */
  talkUrl: string;
  /** Likewise, to the page of runs. */
  runsUrl: string;
  /** Resolves when Postgres ends without having been asked to. */
  databaseLost: Promise<void>;
  /** Stops admitting and waits for the calls in progress, at most `DRAIN_TIMEOUT_S`. */
  drain(): Promise<void>;
  /** Ends the calls that are left and stops all parts. */
  close(): Promise<void>;
}

/**
 * Starts all parts. What was started is stopped again when a later part fails.
 *
 * @throws PortsTakenError, DataDirHeldError, or Error when a part fails
 */
export async function startStandalone(config: StandaloneConfig, logger: Logger): Promise<Standalone> {
  const closers = new Closers();
  try {
    return await startParts(config, logger, closers);
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

async function startParts(config: StandaloneConfig, logger: Logger, closers: Closers): Promise<Standalone> {
  const dataDir = makeDataDir(config.dataDir);
  closers.add(holdDataDir(dataDir));
  const secrets = ensureSecrets(dataDir, config.givenSecrets);
  if (config.allowPrivateAddresses) logger.warn({}, privateAddressesWarning);
  const ports = await holdPorts(config.bindAddress, config.ports);
  closers.add(() => releaseAll(ports));
  const gatewayFor = (apiUrl: string, liveKitUrl: string | undefined) =>
    config.gateway({ port: ports.GATEWAY_PORT.port, apiUrl, internalSecret: secrets.INTERNAL_SECRET, liveKitUrl });
  const { bindAddress, publicUrl = "", redisUrl, trustedProxies } = gatewayFor("http://127.0.0.1", config.liveKit?.url);

  const database = await openDatabase(config, dataDir, logger, closers);
  const sql = openSql({ databaseUrl: database.url, applicationName: "frontdesk standalone" });
  closers.add(() => sql.end({ timeout: 5 }));
  await migrate(sql);
  const bus = await openBus({ redisUrl });
  closers.add(() => bus.close());

  await prepareJobs(database.url);
  const liveKit = config.liveKit ?? (await ownLiveKit(dataDir, publicUrl, logger, closers));
  const shared = {
    bindAddress,
    publicUrl,
    internalSecret: secrets.INTERNAL_SECRET,
    ...(trustedProxies && { trustedProxies }),
    encryptionKey: secrets.ENCRYPTION_KEY,
    jwtSecret: secrets.JWT_SECRET,
    requireEmailVerification: config.requireEmailVerification,
    smtpUrl: config.smtpUrl,
    mailFrom: config.mailFrom,
    requestLogDays: config.requestLogDays,
    prices: config.prices,
    dataDir,
    databaseUrl: database.url,
    appDomain: config.appDomain,
    allowPrivateAddresses: config.allowPrivateAddresses,
    liveKit,
  };
  await ports.API_PORT.release();
  const api = await startApi({ config: { ...shared, apiPort: ports.API_PORT.port }, sql, bus, logger });
  closers.add(() => api.close());
  const apiUrl = reachable(api);
  const { ownerId, file } = await bootstrap({
    sql,
    gatewayUrl: publicUrl,
    apiUrl,
    dataDir,
    appDomain: config.appDomain,
  });
  await ports.WORKER_PORT.release();
  const worker = await startWorker({ config: { ...shared, workerPort: ports.WORKER_PORT.port }, sql, bus, logger });
  closers.add(() => worker.close());

  const gatewayConfig = gatewayFor(apiUrl, liveKit?.url);
  const media = await startWorkerPool({
    threads: gatewayConfig.mediaThreads,
    vad: gatewayConfig.vad ?? "energy",
    world: gatewayConfig.world ?? {},
    toolWorld: { api: { url: gatewayConfig.apiUrl, secret: gatewayConfig.internalSecret } },
    logger,
  });
  closers.add(() => media.close());
  await ports.GATEWAY_PORT.release();
  const gateway = await startGateway({ config: gatewayConfig, bus, media, logger });
  closers.add(() => gateway.close());
  await ports.METRICS_PORT.release();
  const metrics = await serveMetrics(
    { host: bindAddress, port: ports.METRICS_PORT.port, isGiven: true },
    { gateway: gateway.metrics, api: api.metrics, worker: worker.metrics },
  );
  closers.add(() => metrics.close());
  logger.info({ port: metrics.port }, "metrics are served");

  return {
    gateway,
    gatewayUrl: publicUrl,
    apiUrl,
    appUrl: file.app_url,
    collectorUrl: file.collector_url,
    workerUrl: reachable(worker),
    notes: [
      ...movedPorts(config.ports, ports),
      ...slowSockets(gatewayConfig.transport, gateway.transport),
      ...database.notes,
    ],
    bootstrapFile: join(config.dataDir, "bootstrap.json"),
    talkUrl: `${publicUrl}/talk#code=${await createSignInLink(sql, ownerId)}`,
    runsUrl: `${publicUrl}/runs#code=${await createSignInLink(sql, ownerId)}`,
    databaseLost: database.lost,
    drain: () => gateway.drain(),
    close: () => closers.closeAll(),
  };
}

type Ports = Record<keyof StandaloneConfig["ports"], HeldPort>;

async function releaseAll(ports: Ports): Promise<void> {
  await Promise.all(Object.values(ports).map((port) => port.release()));
}

function movedPorts(wanted: StandaloneConfig["ports"], held: Ports): string[] {
  return (Object.keys(wanted) as (keyof Ports)[])
    .filter((name) => wanted[name].port !== 0 && wanted[name].port !== held[name].port)
    .map((name) => `Port ${wanted[name].port} is in use, so ${held[name].port} is taken. Set ${name} to choose one.`);
}

function slowSockets(wanted: string, got: string): string[] {
  if (wanted !== "auto" || got === "uws") return [];
  const serve = "so those in JavaScript serve: the same protocol, fewer calls a core.";
  return [`The native sockets do not load on this machine with Node ${process.versions.node}, ${serve}`];
}

async function openDatabase(
  config: StandaloneConfig,
  dataDir: string,
  logger: Logger,
  closers: Closers,
): Promise<{ url: string; lost: Promise<void>; notes: string[] }> {
  if (config.databaseUrl) return { url: config.databaseUrl, lost: new Promise(() => undefined), notes: [] };
  const notes = await endLeftoverClusters();
  const postgres = await startEmbeddedPostgres({ dataDir, port: config.databasePort, logger });
  let stopping = false;
  closers.add(() => {
    stopping = true;
    return postgres.stop();
  });
  const lost = new Promise<void>((resolve) => void postgres.exited.then(() => stopping || resolve()));
  return { url: postgres.url, lost, notes };
}

/** A LiveKit server where the machine has one; without it everything works but rooms. */
async function ownLiveKit(
  dataDir: string,
  publicUrl: string,
  logger: Logger,
  closers: Closers,
): Promise<LiveKitSettings | undefined> {
  const webhookUrl = `${publicUrl}/v1/agents/voice/rooms/webhook`;
  const server = await startLiveKitServer({ dataDir, webhookUrl }).catch((err: unknown) => {
    logger.error({ err }, "no rooms: livekit-server did not start");
    return undefined;
  });
  if (!server) return undefined;
  let stopping = false;
  closers.add(() => {
    stopping = true;
    return server.stop();
  });
  void server.exited.then(() => stopping || logger.error({}, "livekit-server ended; no rooms until the next start"));
  logger.info({ url: server.url }, "livekit-server runs");
  return { url: server.url, apiKey: server.apiKey, apiSecret: server.apiSecret };
}

/** Where a part that listens on every interface is reached from this machine. */
function reachable(part: Pick<RunningApi, "url">): string {
  return part.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** What has to be undone, last first. */
class Closers {
  readonly #closers: (() => void | Promise<void>)[] = [];

  add(closer: () => void | Promise<void>): void {
    this.#closers.push(closer);
  }

  /** Runs each once, also when one before it fails. @throws the first failure, after all have run */
  async closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      try {
        await closer();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
