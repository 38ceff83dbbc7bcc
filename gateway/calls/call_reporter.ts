/**
 * Tells the api what happens in this gateway's calls: a heartbeat every 5 s with what each call's
 * record has grown by, and a close record when a call ends, repeated until the api takes it.
 * With the api down the calls go on, and what is to be told waits.
 */
import type { CallEnd } from "#contracts/call_record.ts";
import { type CloseCallRequest, heartbeatIntervalS } from "#contracts/internal_calls.ts";
import type { CallsApi } from "../api_client.ts";
import type { Log } from "../log.ts";
import { PendingProgress, type ProgressGrowth } from "./call_progress.ts";
import type { Clock } from "./clock.ts";
import type { CloseSpool } from "./close_spool.ts";

/** The api's bound on one heartbeat. */
const callsPerHeartbeatMax = 1000;
const closeRecordsMax = 10_000;
const closesAtOnceMax = 16;
const retryMsMin = 500;
const retryMsMax = 30_000;

export interface CallReporter {
  opened(callId: string): void;
  progress(callId: string, growth: ProgressGrowth): void;
  /** The call's record is complete; also for a call that was opened and never began. */
  ended(callId: string, end: CallEnd): void;
  /** Close records that the api has not taken. */
  readonly pendingCloses: number;
  /** Sends heartbeats until `stop`; and what an earlier process left behind. */
  start(): Promise<void>;
  /** Resolves when nothing is pending, or `timeoutMs` have passed; what is left then is in the spool. */
  stop(timeoutMs: number): Promise<void>;
}

export interface ReporterDeps {
  gatewayId: string;
  api: CallsApi;
  spool: CloseSpool;
  clock: Clock;
  log: Log;
  /** The api holds this call closed already: it is to be ended. */
  onClosedElsewhere(callId: string): void;
  /** A ceiling of the day ends this call. */
  onOverLimit(callId: string): void;
}

export function createCallReporter(deps: ReporterDeps): CallReporter {
  const { api, clock, gatewayId, log, spool } = deps;
  const open = new Map<string, PendingProgress>();
  const closes = new Map<string, CloseCallRequest>();
  const sending = new Set<string>();
  const spooled = new Set<string>();
  let retryAtMs = 0;
  let retryMs = retryMsMin;
  let beating = false;
  let stopTimers: (() => void)[] = [];
  let wakeWhenIdle: (() => void) | undefined;

  async function heartbeat(): Promise<void> {
    if (beating) return;
    beating = true;
    try {
      const ids = [...open.keys()];
      for (let at = 0; at < ids.length; at += callsPerHeartbeatMax)
        await beat(ids.slice(at, at + callsPerHeartbeatMax));
    } finally {
      beating = false;
      sendCloses();
    }
  }

  async function beat(ids: readonly string[]): Promise<void> {
    const calls = ids.flatMap((callId) => {
      const pending = open.get(callId);
      return pending ? [{ call_id: callId, ...pending.take() }] : [];
    });
    try {
      const { closed, over_limit = [] } = await api.heartbeat({ gateway_id: gatewayId, calls });
      for (const callId of closed) deps.onClosedElsewhere(callId);
      for (const callId of over_limit) deps.onOverLimit(callId);
    } catch (error) {
      log.warn({ err: error, calls: calls.length }, "the api took no heartbeat; the calls go on");
      for (const { call_id, ...growth } of calls) {
        const pending = open.get(call_id);
        if (pending) pending.putBack(growth);
        else putBackIntoClose(call_id, growth);
      }
    }
  }

  /** The call ended while its heartbeat was under way: its close record must tell what the heartbeat could not. */
  function putBackIntoClose(callId: string, growth: ProgressGrowth): void {
    const request = closes.get(callId);
    if (!request) return;
    const pending = new PendingProgress();
    pending.add(growth);
    pending.add(request.progress);
    closes.set(callId, { ...request, progress: { call_id: callId, ...pending.take() } });
  }

  function sendCloses(): void {
    if (clock.nowMs() < retryAtMs) return;
    for (const callId of closes.keys()) {
      if (sending.size >= closesAtOnceMax) return;
      // A heartbeat under way may still hand growth back to this record.
      if (!sending.has(callId) && !beating) void sendClose(callId);
    }
  }

  async function sendClose(callId: string): Promise<void> {
    const request = closes.get(callId);
    if (!request) return;
    sending.add(callId);
    try {
      const taken = await api.closeCall(callId, request);
      if (!taken) log.error({ call_id: callId }, "the api refuses a call's record; it is dropped");
      closes.delete(callId);
      retryMs = retryMsMin;
      if (spooled.delete(callId)) await spool.remove(callId);
    } catch (error) {
      retryAtMs = clock.nowMs() + retryMs;
      retryMs = Math.min(retryMsMax, retryMs * 2);
      log.warn({ err: error, call_id: callId, pending: closes.size }, "the api took no close record; it is kept");
      await keep(callId, request);
    } finally {
      sending.delete(callId);
      if (closes.size === 0) wakeWhenIdle?.();
      else sendCloses();
    }
  }

  async function keep(callId: string, request: CloseCallRequest): Promise<void> {
    if (spooled.has(callId)) return;
    try {
      await spool.keep(callId, request);
      spooled.add(callId);
    } catch (error) {
      log.error({ err: error, call_id: callId }, "cannot keep a close record on disk");
    }
  }

  return {
    opened(callId) {
      open.set(callId, new PendingProgress());
    },
    progress(callId, growth) {
      open.get(callId)?.add(growth);
    },
    ended(callId, end) {
      const growth = open.get(callId)?.take() ?? { items: [], turns: [] };
      open.delete(callId);
      closes.set(callId, { gateway_id: gatewayId, end, progress: { call_id: callId, ...growth } });
      if (closes.size > closeRecordsMax) {
        const oldest = closes.keys().next().value;
        if (oldest !== undefined) closes.delete(oldest);
      }
      sendCloses();
    },
    get pendingCloses() {
      return closes.size;
    },
    async start() {
      for (const [callId, request] of await spool.load()) {
        closes.set(callId, request);
        spooled.add(callId);
      }
      stopTimers = [
        clock.every(heartbeatIntervalS * 1000, () => void heartbeat()),
        clock.every(retryMsMin, sendCloses),
      ];
      sendCloses();
    },
    async stop(timeoutMs) {
      retryAtMs = 0;
      sendCloses();
      if (closes.size > 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          wakeWhenIdle = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      for (const stop of stopTimers) stop();
      for (const [callId, request] of closes) await keep(callId, request);
    },
  };
}
