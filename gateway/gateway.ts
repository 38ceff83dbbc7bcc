/**
 * The gateway, put together: transport, calls, front door.
 *
 *     upgrade  /v1/voice/calls/…   → admission → call
 *     GET      /v1/voice/calls/…   → preflight
 *     GET      /healthz /readyz, /talk and /runs with their files
 *     anything else, and any other host → api
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { type Bus, topics } from "#bus/bus.ts";
import type { CallEnd } from "#contracts/call_record.ts";
import { destinationOf, isApisAlone } from "#contracts/hosts.ts";
import { secretBytes } from "#contracts/secrets.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { MediaHost } from "#media/media_host.ts";
import { type CallsApi, createApiClient } from "./api_client.ts";
import { createApiReadiness } from "./api_readiness.ts";
import { type AdmissionDeps, createAdmission } from "./calls/admission.ts";
import type { Call } from "./calls/call.ts";
import type { ProgressGrowth } from "./calls/call_progress.ts";
import { CallRegistry } from "./calls/call_registry.ts";
import { createCallReporter } from "./calls/call_reporter.ts";
import { CallSlots } from "./calls/call_slots.ts";
import { isCallPath } from "./calls/call_url.ts";
import { type Clock, systemClock } from "./calls/clock.ts";
import { createCloseSpool } from "./calls/close_spool.ts";
import { injectControl } from "./calls/control.ts";
import { ReservationTakes } from "./calls/reservation_takes.ts";
import type { GatewayConfig } from "./config.ts";
import { createDrain } from "./drain.ts";
import { createFrontDoor, sendError } from "./front_door.ts";
import { ownPage } from "./local_routes.ts";
import type { Log } from "./log.ts";
import { createGatewayMetrics } from "./metrics.ts";
import { createRoomSeats } from "./rooms/room_seats.ts";
import { createSeatPool, type SeatPool } from "./rooms/seat_pool.ts";
import { createRunLog } from "./streams/run_log.ts";
import { createRunStreams } from "./streams/run_streams.ts";
import { openTransport } from "./transport/open_transport.ts";
import type { HttpRequest, HttpResponse } from "./transport/transport.ts";
import { createWriteProbe } from "./write_probe.ts";

export interface GatewayDeps {
  config: GatewayConfig;
  bus: Bus;
  media: MediaHost;
  logger: Log;
  /** Tests bring their own. */
  api?: CallsApi;
  clock?: Clock;
  seatPool?: SeatPool;
}

export interface Gateway {
  /** `http://host:port` of this process. */
  url: string;
  port: number;
  transport: "uws" | "ws";
  /** For whoever serves them. */
  metrics: Registry;
  slotsInUse(): number;
  /** Stops admitting; resolves when no call is left, at the latest soon after `DRAIN_TIMEOUT_S`. */
  drain(): Promise<void>;
  /** Ends what is left and lets go of the port. Bus and media host stay open: they are the caller's. */
  close(): Promise<void>;
}

const capacityReportMs = 2000;
const capacityTtlMs = 6000;
/** At `close`: for sessions to end, and for the api to take their records. */
const closeMsMax = 3000;

/** @throws when the port cannot be had */
export async function startGateway(deps: GatewayDeps): Promise<Gateway> {
  const { bus, config, logger: log } = deps;
  const clock = deps.clock ?? systemClock;
  const api = deps.api ?? createApiClient({ apiUrl: config.apiUrl, internalSecret: config.internalSecret });
  const slots = new CallSlots(config.callSlots);
  const registry = new CallRegistry(clock);
  const spool = createCloseSpool(join(config.dataDir, "gateway", "close_records"));
  const reporter = createCallReporter({
    gatewayId: config.gatewayId,
    api,
    spool,
    clock,
    log,
    onClosedElsewhere: (callId) => registry.get(callId)?.end("error", { errorCode: "closed_elsewhere" }),
    onOverLimit: (callId) => registry.get(callId)?.leave("usage_limit"),
  });
  const metrics = createGatewayMetrics({
    bus,
    slotsTotal: slots.total,
    slotsInUse: () => slots.inUse,
    calls: () => registry.size,
    pendingCloses: () => reporter.pendingCloses,
    readers: () => streams.readers(),
    waiting: () => streams.waiting(),
    upstream: () => frontDoor.load(),
  });
  const reportCapacity = async () => {
    const figures = { slots: slots.total, inUse: slots.inUse, draining: drain.isDraining };
    await bus.reportCapacity(config.gatewayId, figures, capacityTtlMs).catch((error: unknown) => {
      log.warn({ err: error }, "the bus took no capacity figures");
    });
  };
  const drain = createDrain({
    registry,
    timeoutMs: config.drainTimeoutS * 1000,
    settled: async (deadline) => {
      await Promise.all([admission.settled(), rooms.settled(deadline)]);
    },
    onBegin: () => {
      log.info({ calls: registry.size, deadline_s: config.drainTimeoutS }, "draining");
      void reportCapacity();
      streams.drain();
    },
  });

  let closing: Promise<void> | undefined;
  // Known once the port is; no call begins before.
  let gatewayPublicUrl = config.gatewayPublicUrl ?? config.publicUrl ?? "";
  const toCalls = {
    gatewayId: config.gatewayId,
    bus,
    api,
    slots,
    registry,
    reporter,
    metrics,
    log,
    isDraining: () => drain.isDraining || closing !== undefined,
    call: {
      nowMs: clock.nowMs,
      newToken: () => randomBytes(secretBytes).toString("base64url"),
      media: deps.media,
      get gatewayPublicUrl() {
        return gatewayPublicUrl;
      },
      onTurn: (gatewayMs: number) => metrics.turn(gatewayMs),
      onStalled: () => metrics.clientStalled(),
      onProgress: (callId: string, growth: ProgressGrowth) => reporter.progress(callId, growth),
      onEnded: (call: Call, end: CallEnd) => {
        registry.remove(call);
        reporter.ended(call.callId, end);
        metrics.ended(end.reason);
        rooms.callEnded(call.callId);
      },
    },
  } satisfies Partial<AdmissionDeps>;
  const takes = new ReservationTakes({ bus, clock, log });
  const admission = createAdmission({ ...toCalls, takes, nowMs: clock.nowMs, random: Math.random });
  const pool = deps.seatPool ?? createSeatPool({ log });
  const rooms = createRoomSeats({ ...toCalls, clock, pool });
  const { apiUrl, internalSecret } = config;
  const runLog = createRunLog({ apiUrl, internalSecret });
  const streams = createRunStreams({ bus, log: runLog, logger: log, metrics });
  const publicUrl = config.publicUrl ?? "http://127.0.0.1";
  const frontDoor = createFrontDoor({ apiUrl, publicUrl, internalSecret, streams, runLog, clock, log });

  const keepsRecords = createWriteProbe(join(config.dataDir, "gateway"), clock);
  const apiReadiness = createApiReadiness(() => api.isReady(), clock);
  const isReady = async (): Promise<boolean> => {
    // Not the bus: without it calls in progress go on, and a restart would mend nothing.
    return !drain.isDraining && (await keepsRecords()) && (await apiReadiness.isReady());
  };

  async function onRequest(request: HttpRequest, response: HttpResponse): Promise<void> {
    const destination = destinationOf(request.headers.host, request.path, config.appDomain);
    if (isApisAlone(destination)) return frontDoor.forward(request, response, destination);
    const isRead = request.method === "GET" || request.method === "HEAD";
    const refuseMethod = () => sendError(response, "method_not_allowed", [["allow", "GET, HEAD"]]);
    if (isCallPath(request.path)) return isRead ? admission.preflight(request.path, response) : refuseMethod();
    const page = await ownPage(request.path, {
      ifNoneMatch: request.headers["if-none-match"],
      connectTo: [config.publicUrl, gatewayPublicUrl].filter((url) => url !== undefined),
      liveKitUrl: config.liveKitUrl,
      isDraining: () => drain.isDraining,
      isReady,
    });
    if (page && !isRead) return refuseMethod();
    if (page) return response.send(page.status, Object.entries(page.headers), page.body);
    return frontDoor.forward(request, response, destination);
  }

  const transport = await openTransport(
    { onRequest, onUpgrade: (upgrade) => admission.upgrade(upgrade) },
    {
      choice: config.transport,
      trustedProxies: config.trustedProxies,
      messageBytesMax: voiceLimits.messageBytesMax,
      warn: (message) => log.warn({ transport: "ws" }, message),
    },
  );
  await reporter.start();
  const subscriptions = await Promise.all([
    bus.subscribe(topics.callControl(config.gatewayId), (payload) => injectControl(registry, payload, log)),
    bus.subscribe(topics.seatRequest(config.gatewayId), (payload) => rooms.request(payload)),
    bus.subscribe(topics.roomNews(config.gatewayId), (payload) => rooms.news(payload)),
  ]);
  const port = await transport.listen(config.bindAddress, config.port);
  const host = config.bindAddress === "0.0.0.0" || config.bindAddress === "::" ? "127.0.0.1" : config.bindAddress;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  gatewayPublicUrl ||= url;
  const stopCapacity = clock.every(capacityReportMs, () => void reportCapacity());
  void reportCapacity();
  if (config.liveKitUrl !== undefined) pool.warmUp();
  log.info({ url, transport: transport.name, slots: slots.total, gateway_id: config.gatewayId }, "gateway listens");

  async function close(): Promise<void> {
    stopCapacity();
    const late = new Promise((resolve) => setTimeout(resolve, closeMsMax).unref());
    await Promise.race([admission.settled(), late]);
    takes.close();
    registry.endAll("drained", { close: "restart" });
    await Promise.race([registry.whenEmpty(), late]);
    await rooms.close();
    await streams.close();
    await transport.close();
    await Promise.allSettled(subscriptions.map((unsubscribe) => unsubscribe()));
    await reporter.stop(closeMsMax);
    registry.stop();
    await Promise.all([frontDoor.close(), deps.api ? undefined : api.close()]);
  }

  return {
    url,
    port,
    transport: transport.name,
    metrics: metrics.registry,
    slotsInUse: () => slots.inUse,
    drain: () => drain.begin(),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
