/**
 * The connections to the api, shared out so that nobody starves the others: bounded for each kind of
 * route, each address and each tenant. Who finds no room waits in line, and lines are served in turn:
 * address by address, and of an address tenant by tenant.
 */
import type { Clock } from "../calls/clock.ts";
import { RequestAbortedError } from "../transport/transport.ts";
import type { Requester, RouteKind } from "./requester.ts";
import { addTo, Shares } from "./shares.ts";

export interface BulkheadLimits {
  /** Connections. */
  total: number;
  kind: number;
  address: number;
  tenant: number;
  /** Requests in line, of everybody and of one tenant. */
  waiting: number;
  waitingOfTenant: number;
  waitMs: number;
}

export const bulkheadLimits: Readonly<BulkheadLimits> = {
  total: 128,
  kind: 96,
  address: 96,
  tenant: 32,
  waiting: 8192,
  waitingOfTenant: 2048,
  waitMs: 10_000,
};

/** No room, and no place in line or too long in it. */
export class OverloadedError extends Error {
  constructor() {
    super("No connection to the api is free for this caller");
    this.name = "OverloadedError";
  }
}

interface Waiter {
  requester: Requester;
  dueMs: number;
  admit(): void;
  refuse(error: Error): void;
}

export class Bulkhead {
  readonly #limits: BulkheadLimits;
  readonly #clock: Clock;
  readonly #shares: Shares;
  readonly #byKind = new Map<RouteKind, number>();
  /** By address, then by tenant; the first in each map has its turn next. */
  readonly #lines = new Map<string, Map<string, Waiter[]>>();
  #waiting = 0;
  readonly #stopTicker: () => void;

  constructor(clock: Clock, limits: BulkheadLimits = bulkheadLimits) {
    this.#limits = limits;
    this.#clock = clock;
    this.#shares = new Shares(limits);
    this.#stopTicker = clock.every(1000, () => this.#refuseLate());
  }

  get inUse(): number {
    return this.#shares.taken;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * @returns what gives the connection back, once
   * @throws OverloadedError, or RequestAbortedError when `signal` aborts in line
   */
  async enter(requester: Requester, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw new RequestAbortedError();
    if (this.#fits(requester)) this.#take(requester);
    else await this.#waitInLine(requester, signal);
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#shares.give(requester, 1);
      addTo(this.#byKind, requester.kind, -1);
      this.#admitNext();
    };
  }

  close(): void {
    this.#stopTicker();
    this.#refuse(() => true);
  }

  #fits(requester: Requester): boolean {
    return (this.#byKind.get(requester.kind) ?? 0) < this.#limits.kind && this.#shares.hasRoom(requester, 1);
  }

  #take(requester: Requester): void {
    this.#shares.take(requester, 1);
    addTo(this.#byKind, requester.kind, 1);
  }

  #waitInLine(requester: Requester, signal: AbortSignal): Promise<void> {
    const lines = this.#lines.get(requester.address) ?? new Map<string, Waiter[]>();
    const line = lines.get(requester.tenant) ?? [];
    if (this.#waiting >= this.#limits.waiting || line.length >= this.#limits.waitingOfTenant) {
      throw new OverloadedError();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#refuse((one) => one === waiter, new RequestAbortedError());
      const settle = (settled: () => void) => {
        this.#waiting -= 1;
        signal.removeEventListener("abort", onAbort);
        settled();
      };
      const waiter: Waiter = {
        requester,
        dueMs: this.#clock.nowMs() + this.#limits.waitMs,
        admit: () => settle(resolve),
        refuse: (error) => settle(() => reject(error)),
      };
      signal.addEventListener("abort", onAbort, { once: true });
      line.push(waiter);
      lines.set(requester.tenant, line);
      this.#lines.set(requester.address, lines);
      this.#waiting += 1;
    });
  }

  #admitNext(): void {
    for (const [address, lines] of this.#lines) {
      for (const [tenant, line] of lines) {
        const [next] = line;
        if (!next || !this.#fits(next.requester)) continue;
        line.shift();
        lines.delete(tenant);
        if (line.length > 0) lines.set(tenant, line);
        this.#lines.delete(address);
        if (lines.size > 0) this.#lines.set(address, lines);
        this.#take(next.requester);
        next.admit();
        return;
      }
    }
  }

  #refuseLate(): void {
    const nowMs = this.#clock.nowMs();
    this.#refuse(({ dueMs }) => dueMs <= nowMs);
  }

  #refuse(isRefused: (waiter: Waiter) => boolean, error: Error = new OverloadedError()): void {
    for (const [address, lines] of this.#lines) {
      for (const [tenant, line] of lines) {
        const kept = line.filter((waiter) => !isRefused(waiter));
        if (kept.length === line.length) continue;
        if (kept.length > 0) lines.set(tenant, kept);
        else lines.delete(tenant);
        for (const waiter of line) if (isRefused(waiter)) waiter.refuse(error);
      }
      if (lines.size === 0) this.#lines.delete(address);
    }
  }
}
