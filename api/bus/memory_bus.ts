/**
 * The bus of one process: everything in maps, gone with the process. What has expired is swept
 * while the bus is used, so that no timer keeps the process alive and memory stays bounded by what
 * lives at a time.
 */
import type { ReservedCall } from "#contracts/internal_calls.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { Bus, CapacityFigures, TakeResult } from "./bus.ts";

export interface MemoryBus extends Bus {
  /** Entries held at the moment, expired ones that wait for the sweep included. */
  entryCount(): number;
}

interface ReservationEntry {
  reservation: ReservedCall;
  expiresAtMs: number;
  consumed: boolean;
  taker?: string;
  forgottenAtMs: number;
}

interface RateWindow {
  hits: number;
  forgottenAtMs: number;
}

interface CapacityEntry {
  capacity: CapacityFigures;
  forgottenAtMs: number;
}

const sweepIntervalMs = 10_000;

/** @param options.nowMs the clock, milliseconds since the epoch; tests hand in their own */
export function createMemoryBus(options: { nowMs?: () => number } = {}): MemoryBus {
  const nowMs = options.nowMs ?? Date.now;
  const reservations = new Map<string, ReservationEntry>();
  const rates = new Map<string, RateWindow>();
  const gateways = new Map<string, CapacityEntry>();
  const listeners = new Map<string, Set<(payload: string) => void>>();
  let sweptAtMs = nowMs();

  function sweep(): number {
    const now = nowMs();
    if (now - sweptAtMs >= sweepIntervalMs) {
      sweptAtMs = now;
      for (const entries of [reservations, rates, gateways]) {
        for (const [key, entry] of entries) if (entry.forgottenAtMs <= now) entries.delete(key);
      }
    }
    return now;
  }

  function known(callId: string): ReservationEntry | undefined {
    const now = sweep();
    const entry = reservations.get(callId);
    return entry && entry.forgottenAtMs > now ? entry : undefined;
  }

  return {
    async putReservation(reservation) {
      if (known(reservation.call_id)?.consumed) return;
      const expiresAtMs = Date.parse(reservation.expires_at);
      reservations.set(reservation.call_id, {
        reservation: structuredClone(reservation),
        expiresAtMs,
        consumed: false,
        forgottenAtMs: expiresAtMs + voiceLimits.reservationTtlS * 1000,
      });
    },

    async peekReservation(callId) {
      const entry = known(callId);
      return entry && { reservation: structuredClone(entry.reservation), consumed: entry.consumed };
    },

    async takeReservation(callId, taker): Promise<TakeResult> {
      const entry = known(callId);
      if (!entry) return "unknown";
      if (entry.consumed) return entry.taker === taker ? "taken" : "consumed";
      if (entry.expiresAtMs <= nowMs()) return "expired";
      entry.consumed = true;
      entry.taker = taker;
      entry.forgottenAtMs = nowMs() + voiceLimits.tombstoneTtlS * 1000;
      return "taken";
    },

    async restoreReservation(callId, taker) {
      const entry = known(callId);
      if (!entry?.consumed || entry.taker !== taker) return;
      entry.consumed = false;
      entry.forgottenAtMs = entry.expiresAtMs + voiceLimits.reservationTtlS * 1000;
    },

    async publish(topic, payload) {
      // Later, as over a network: a listener never runs inside the publisher's own call.
      for (const listener of listeners.get(topic) ?? []) {
        queueMicrotask(() => {
          if (listeners.get(topic)?.has(listener)) listener(payload);
        });
      }
    },

    async subscribe(topic, listener) {
      // A function of its own for each subscription: the same listener may subscribe twice.
      const subscription = (payload: string) => listener(payload);
      const subscribed = listeners.get(topic) ?? new Set();
      listeners.set(topic, subscribed.add(subscription));
      return async () => {
        subscribed.delete(subscription);
        if (subscribed.size === 0 && listeners.get(topic) === subscribed) listeners.delete(topic);
      };
    },

    async reportCapacity(gatewayId, capacity, ttlMs) {
      gateways.set(gatewayId, { capacity: { ...capacity }, forgottenAtMs: sweep() + ttlMs });
    },

    async capacities() {
      const now = sweep();
      const live = [...gateways].filter(([, entry]) => entry.forgottenAtMs > now);
      return new Map(live.map(([id, entry]) => [id, { ...entry.capacity }]));
    },

    async hitRateLimit(key, limit, windowMs) {
      const now = sweep();
      const open = rates.get(key);
      const window = open && open.forgottenAtMs > now ? open : { hits: 0, forgottenAtMs: now + windowMs };
      window.hits += 1;
      rates.set(key, window);
      const allowed = window.hits <= limit;
      return { allowed, retryAfterMs: allowed ? 0 : window.forgottenAtMs - now };
    },

    async ping() {},
    link: () => ({ isUp: true, reconnects: 0 }),

    async close() {
      for (const entries of [reservations, rates, gateways, listeners]) entries.clear();
    },

    entryCount: () => reservations.size + rates.size + gateways.size + listeners.size,
  };
}
