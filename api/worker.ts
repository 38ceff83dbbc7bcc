/**
 * The worker: sweeps what other processes left behind and runs the scheduled jobs. Any number may
 * run beside each other.
 */
import { hostname } from "node:os";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { sendMailTask, sendQueuedMail } from "#accounts/account_mail.ts";
import { purgeAccountTokens } from "#accounts/account_tokens.ts";
import { purgeRequestLog } from "#accounts/request_log.ts";
import type { Bus } from "#bus/bus.ts";
import { openBus } from "#bus/open_bus.ts";
import { purgeConnectTokens } from "#connections/connect_tokens.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { answerSubjectRequest, purgeSubjectRecords } from "#data_subjects/subject_job.ts";
import { subjectRequestTask } from "#data_subjects/subject_requests.ts";
import type { Logger } from "#http/logger.ts";
import { platformErrorResponse } from "#http/platform_face.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { createService } from "#http/service.ts";
import { purgeExpiredCredentials } from "#identity/purge.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import { type LiveKitSettings, openLiveKit } from "#outbound/livekit.ts";
import { openMailer } from "#outbound/mailer.ts";
import { McpPool } from "#outbound/mcp_pool.ts";
import { openPriceTable } from "#providers/price_table.ts";
import { createCallbackDelivery, rescueCallbacks } from "#runs/callback_delivery.ts";
import { nodeDepsFor } from "#runs/engine/node_deps.ts";
import { type RunEngine, startRunEngine } from "#runs/engine/run_engine.ts";
import { createRunMetrics } from "#runs/run_metrics.ts";
import { deliverCallbacksTask, executeRunTask } from "#runs/run_queue.ts";
import { purgeRuns, sweepRuns } from "#runs/run_sweeper.ts";
import { knownRuns, runTraces } from "#runs/run_traces.ts";
import { createEncryption } from "#store/encryption.ts";
import { purgeFailedJobs, releaseStuckJobs, startJobs } from "#store/jobs.ts";
import { type SqlPool, unavailableStore } from "#store/sql.ts";
import { recheckNightly } from "#tax/recheck/recheck.ts";
import { rulesetOnDisk } from "#tax/tax_service.ts";
import { openSpanStore } from "#traces/open_span_store.ts";
import { writeDueTraces } from "#traces/trace_due.ts";
import { createTraceMetrics } from "#traces/trace_metrics.ts";
import { sendLimitMail, sendLimitMailTask } from "#usage/limit_notices.ts";
import { purgeCalls, sweepCalls } from "#voice/call_sweeper.ts";
import { callTraces, knownCalls } from "#voice/call_traces.ts";
import { sweepRooms } from "#voice/room_sweeper.ts";
import { cancelRunsOfEndedCalls } from "./app_tools.ts";
import { personalData } from "./personal_data.ts";
import { healthRoutes } from "./process/health.ts";
import { listen } from "./process/http_listener.ts";
import { startPeriodic } from "./process/periodic.ts";
import { exportProcess } from "./process/process_metrics.ts";
import { openMigratedSql } from "./process/server.ts";

const sweepIntervalMs = 5000;
const runSweepIntervalMs = 2000;
/** A trace is there so soon after its run or call. */
const traceIntervalMs = 500;
const stuckJobsIntervalMs = 60_000;

export interface StartWorkerOptions {
  config: {
    bindAddress: string;
    /** Health. */
    workerPort: number;
    databaseUrl: string;
    /** As the api's. */
    migrate?: "start" | "never";
    redisUrl?: string | undefined;
    encryptionKey: string;
    /** Links in mail are made from it. */
    publicUrl: string;
    /** Mail goes to files in the outbox of `dataDir` when it is absent. */
    smtpUrl?: string | undefined;
    mailFrom: string;
    /** How long the request log is kept. */
    requestLogDays: number;
    dataDir: string;
    /** Development only: addresses that users give may be private. */
    allowPrivateAddresses: boolean;
    /** Undefined: no rooms. */
    liveKit?: LiveKitSettings | undefined;
    /** What vendors charge; their list prices when absent. */
    prices?: PriceTable;
  };
  sql?: SqlPool;
  bus?: Bus;
  logger: Logger;
}

export interface RunningWorker {
  url: string;
  port: number;
  /** For whoever serves them. */
  metrics: Registry;
  /** Finishes what is under way and releases every connection that the worker opened. Before Postgres stops. */
  close(): Promise<void>;
}

export async function startWorker({ config, logger, ...given }: StartWorkerOptions): Promise<RunningWorker> {
  const sql = given.sql ?? (await openMigratedSql({ ...config, needsSession: "a worker" }));
  const bus = given.bus ?? (await openBus({ redisUrl: config.redisUrl }));
  const now = () => new Date();
  const metrics = createRequestMetrics();
  exportProcess(metrics.registry, { role: "worker", sql, bus });
  let engine: RunEngine | undefined;
  const runMetrics = createRunMetrics(metrics.registry, {
    sql,
    running: () => engine?.running() ?? 0,
    unwrittenBytes: () => engine?.unwrittenBytes() ?? 0,
  });
  const fetch = createService({
    routes: healthRoutes({ sql, bus, now }),
    face: platformErrorResponse,
    translateError: unavailableStore,
    logger,
    metrics,
    newRequestId: () => crypto.randomUUID(),
  });
  const listener = await listen(fetch, { host: config.bindAddress, port: config.workerPort });
  const http = createGuardedHttp({ allowPrivateAddresses: config.allowPrivateAddresses });
  const mcp = new McpPool(http);
  const encryption = createEncryption(config.encryptionKey);
  const mailer = openMailer({
    smtpUrl: config.smtpUrl,
    outboxFolder: join(config.dataDir, "outbox"),
    from: config.mailFrom,
  });
  const prices = config.prices ?? openPriceTable();
  const runEngine = await startRunEngine({
    sql,
    bus,
    logger,
    now,
    newId: () => crypto.randomUUID(),
    workerId: `${hostname()}:${process.pid}:${crypto.randomUUID().slice(0, 8)}`,
    metrics: runMetrics,
    nodeDeps: (claimed) => nodeDepsFor({ sql, http, mcp, encryption, prices, now }, claimed),
  });
  engine = runEngine;
  const traces = openSpanStore({ sql, now });
  const callbacks = createCallbackDelivery({ sql, http, encryption, logger, now });
  const jobs = await startJobs({
    databaseUrl: config.databaseUrl,
    tasks: {
      purge_expired_credentials: () => purgeExpiredCredentials({ sql, now }),
      purge_account_tokens: () => purgeAccountTokens({ sql, now }),
      purge_connect_tokens: () => purgeConnectTokens({ sql, now }),
      purge_runs: () => purgeRuns({ sql, now }),
      purge_calls: () => purgeCalls({ sql, now }),
      purge_traces: () => traces.purge(),
      purge_request_log: () => purgeRequestLog({ sql, now }, config.requestLogDays),
      purge_failed_jobs: () => purgeFailedJobs({ sql, now }),
      recheck_bookings: async () => {
        const reports = await recheckNightly({ sql, now, ruleset: rulesetOnDisk() });
        if (reports > 0) logger.info({ reports }, "stays to come that today's tax law changes");
      },
      purge_subject_records: () => purgeSubjectRecords({ sql, now }),
      [subjectRequestTask]: (payload) =>
        answerSubjectRequest({ sql, encryption, now, rooms: personalData({ sql, now, traces }) }, payload),
      [sendMailTask]: (payload) => sendQueuedMail({ sql, mailer, publicUrl: config.publicUrl, now }, payload),
      [sendLimitMailTask]: (payload) => sendLimitMail({ sql, mailer }, payload),
      [executeRunTask]: (payload) => runEngine.take(runIdOf(payload)),
      [deliverCallbacksTask]: (payload) => callbacks.deliver(runIdOf(payload)),
    },
    schedule: {
      purge_expired_credentials: "17 * * * *",
      purge_account_tokens: "27 * * * *",
      purge_connect_tokens: "37 * * * *",
      // Often, as a round ends after a minute however much is left.
      purge_runs: "7,17,27,37,47,57 * * * *",
      purge_calls: "3,13,23,33,43,53 * * * *",
      purge_traces: "1,11,21,31,41,51 * * * *",
      purge_request_log: "47 * * * *",
      purge_subject_records: "57 * * * *",
      purge_failed_jobs: "47 3 * * *",
      recheck_bookings: "7 2 * * *",
    },
    concurrency: 8,
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
      const canceled = await cancelRunsOfEndedCalls({ sql, bus, now });
      if (canceled > 0) logger.info({ canceled }, "canceled runs whose call is over");
    },
  });
  const runSweeper = startPeriodic({
    intervalMs: runSweepIntervalMs,
    onError,
    run: async () => {
      const { orphaned } = await sweepRuns({ sql, bus, now });
      if (orphaned > 0) logger.warn({ orphaned }, "took over runs whose worker is gone");
      await rescueCallbacks(sql, now());
    },
  });
  const traceMetrics = createTraceMetrics(metrics.registry, logger);
  const traceWriter = startPeriodic({
    intervalMs: traceIntervalMs,
    onError,
    run: async () => {
      const makeTraces = { run: runTraces(sql), call: callTraces(sql) };
      const stillThere = { run: knownRuns(sql), call: knownCalls(sql) };
      const onDropped = traceMetrics.dropped;
      traceMetrics.written(await writeDueTraces({ sql, store: traces, now, makeTraces, stillThere, onDropped }));
    },
  });
  const liveKit = config.liveKit && (await openLiveKit(config.liveKit));
  const roomSweeper =
    liveKit &&
    startPeriodic({
      intervalMs: sweepIntervalMs,
      onError,
      run: async () => {
        const { closed } = await sweepRooms({ sql, liveKit, now });
        if (closed > 0) logger.info({ closed }, "closed rooms whose call is over");
      },
    });
  const rescuer = startPeriodic({ intervalMs: stuckJobsIntervalMs, onError, run: () => releaseStuckJobs(sql, now()) });
  logger.info({ url: listener.url }, "worker runs");
  return {
    url: listener.url,
    port: listener.port,
    metrics: metrics.registry,
    async close() {
      await Promise.all([
        roomSweeper?.stop(),
        sweeper.stop(),
        runSweeper.stop(),
        traceWriter.stop(),
        rescuer.stop(),
        jobs.stop(),
        listener.close(),
      ]);
      await runEngine.stop();
      await callbacks.close();
      await mcp.close();
      await http.close();
      mailer.close();
      if (!given.bus) await bus.close();
      if (!given.sql) await sql.end({ timeout: 5 });
    },
  };
}

/** @throws Error for a job that nobody of ours added */
function runIdOf(payload: unknown): string {
  const { run_id } = payload as { run_id?: unknown };
  if (typeof run_id !== "string") throw new Error("Expected a job with a run_id");
  return run_id;
}
