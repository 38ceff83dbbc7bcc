/** The gateway's figures for Prometheus. One registry a gateway, so that two can live in one process. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Bus } from "#bus/bus.ts";
import { exportBusLink } from "#bus/bus_metrics.ts";
import { version } from "#contracts/version.ts";
import type { EndReason, RefusalCode } from "#contracts/voice_protocol.ts";

export interface GatewayMetrics extends StreamMetrics {
  refused(code: RefusalCode): void;
  /** From the upgrade request to the 101. */
  admitted(handshakeMs: number): void;
  resumed(): void;
  ended(reason: EndReason): void;
  /** Of one turn: what the gateway added to it. */
  turn(gatewayMs: number): void;
  /** The client of a call has stopped to read. */
  clientStalled(): void;
  /** For whoever serves them. */
  registry: Registry;
}

/** What the streams of runs tell as they work. */
export interface StreamMetrics {
  /** A stream that had missed something has read it from the log. */
  caughtUp(durationS: number): void;
  /** From a commit by a worker, by the worker's clock, to the write to the clients. */
  delivered(ageS: number): void;
}

export interface MetricsSources {
  bus: Pick<Bus, "link">;
  slotsTotal: number;
  slotsInUse(): number;
  calls(): number;
  pendingCloses(): number;
  /** What the way to the api is loaded with. */
  upstream(): { connections: number; waitingForConnection: number; bodyBytes: number };
  /** Requests that wait for a run. */
  waiting(): number;
  /** Of run streams. */
  readers(): { open: number; paused: number };
}

export function createGatewayMetrics(sources: MetricsSources): GatewayMetrics {
  const register = new Registry();
  const registers = [register];
  collectDefaultMetrics({ register });
  exportBusLink(register, sources.bus);
  new Gauge({
    name: "frontdesk_build_info",
    help: "1, with the version of Frontdesk and of Node",
    labelNames: ["role", "version", "node"],
    registers,
  }).set({ role: "gateway", version, node: process.version }, 1);

  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("frontdesk_call_slots", "Call slots of this gateway", () => sources.slotsTotal);
  gauge("frontdesk_call_slots_in_use", "Call slots that are taken", sources.slotsInUse);
  gauge("frontdesk_calls", "Calls whose session has not ended", sources.calls);
  gauge("frontdesk_close_records_pending", "Close records that the api has not taken", sources.pendingCloses);
  gauge("frontdesk_upstream_in_use", "Connections to the api in use", () => sources.upstream().connections);
  gauge("frontdesk_upstream_waiting", "Requests that wait for one", () => sources.upstream().waitingForConnection);
  gauge("frontdesk_request_body_bytes", "Bytes of requests' bodies in memory", () => sources.upstream().bodyBytes);
  gauge("frontdesk_runs_awaited", "Requests that wait for a run", sources.waiting);
  gauge("frontdesk_run_streams", "Connections that a run is streamed to", () => sources.readers().open);
  gauge("frontdesk_run_streams_paused", "Of these, the ones that take nothing", () => sources.readers().paused);

  const refusals = new Counter({
    name: "frontdesk_call_refusals_total",
    help: "Refused upgrades by code",
    labelNames: ["code"],
    registers,
  });
  const resumes = new Counter({
    name: "frontdesk_call_resumes_total",
    help: "Calls resumed on a new socket",
    registers,
  });
  const stalls = new Counter({
    name: "frontdesk_call_client_stalls_total",
    help: "Times that the client of a call stopped to take what it is sent",
    registers,
  });
  const ends = new Counter({
    name: "frontdesk_calls_ended_total",
    help: "Ended calls by reason",
    labelNames: ["reason"],
    registers,
  });
  const handshakes = new Histogram({
    name: "frontdesk_call_handshake_seconds",
    help: "From the upgrade request to the 101",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  });
  const turns = new Histogram({
    name: "frontdesk_call_turn_gateway_seconds",
    help: "What the gateway added to a turn: the whole less the providers and the wait for the end of speech",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 1],
    registers,
  });
  const catchUps = new Histogram({
    name: "frontdesk_stream_catchup_seconds",
    help: "Reading what a stream of a run had missed from the log",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const deliveries = new Histogram({
    name: "frontdesk_stream_delivery_seconds",
    help: "From a worker's commit of a run's events, by its clock, to the write to the clients",
    buckets: [0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.25, 1, 5],
    registers,
  });

  return {
    refused: (code) => refusals.inc({ code }),
    admitted: (handshakeMs) => handshakes.observe(handshakeMs / 1000),
    resumed: () => resumes.inc(),
    clientStalled: () => stalls.inc(),
    ended: (reason) => ends.inc({ reason }),
    turn: (gatewayMs) => turns.observe(gatewayMs / 1000),
    caughtUp: (durationS) => catchUps.observe(durationS),
    delivered: (ageS) => deliveries.observe(Math.max(0, ageS)),
    registry: register,
  };
}
