/**
 * Takes a request's body in before anything is asked of the api, so that a slow sender costs memory and no
 * connection. Bounded for each request, each tenant, each address and in all, and in time: a body has to
 * move, and to arrive at a pace.
 */
import type { Clock } from "../calls/clock.ts";
import type { HttpRequest } from "../transport/transport.ts";
import type { Requester } from "./requester.ts";
import { type ShareLimits, Shares } from "./shares.ts";

export interface IntakeLimits {
  /** Uploads (datasets, documents) included; the api's routes have tighter bounds of their own. */
  requestBytes: number;
  shares: ShareLimits;
  /** Without a byte. */
  idleMs: number;
  /** For the whole body, and one more second for each `bytesPerSecond` that arrived. */
  totalMs: number;
  bytesPerSecond: number;
}

const mebibyte = 1024 * 1024;
export const intakeLimits: Readonly<IntakeLimits> = {
  requestBytes: 32 * mebibyte,
  shares: { total: 192 * mebibyte, address: 128 * mebibyte, tenant: 64 * mebibyte },
  idleMs: 10_000,
  totalMs: 60_000,
  bytesPerSecond: 64 * 1024,
};

/** Why a body is not taken: too large, no memory for it now, or too slow. */
export class BodyRefusedError extends Error {
  readonly code: "payload_too_large" | "unavailable" | "request_timeout";

  constructor(code: BodyRefusedError["code"]) {
    super(`The body is refused: ${code}`);
    this.name = "BodyRefusedError";
    this.code = code;
  }
}

export interface TakenBody {
  chunks: readonly Uint8Array[];
  bytes: number;
  /** Counts the memory as free, once: the chunks are not to be kept beyond. */
  release(): void;
}

interface Reception {
  startedMs: number;
  heardMs: number;
  bytes: number;
  giveUp(error: BodyRefusedError): void;
}

export class BodyIntake {
  readonly #limits: IntakeLimits;
  readonly #clock: Clock;
  readonly #memory: Shares;
  readonly #receptions = new Set<Reception>();
  readonly #stopTicker: () => void;

  constructor(clock: Clock, limits: IntakeLimits = intakeLimits) {
    this.#limits = limits;
    this.#clock = clock;
    this.#memory = new Shares(limits.shares);
    this.#stopTicker = clock.every(1000, () => this.#giveUpSlow());
  }

  /** Bytes held, of bodies that arrive and of bodies that wait for the api. */
  get heldBytes(): number {
    return this.#memory.taken;
  }

  /** @throws BodyRefusedError, or RequestAbortedError when the sender is gone */
  async take(request: HttpRequest, requester: Requester): Promise<TakenBody> {
    if (Number(request.headers["content-length"] ?? 0) > this.#limits.requestBytes) {
      throw new BodyRefusedError("payload_too_large");
    }
    const chunks: Uint8Array[] = [];
    const nowMs = this.#clock.nowMs();
    let giveUp: (error: BodyRefusedError) => void = () => undefined;
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const reception: Reception = { startedMs: nowMs, heardMs: nowMs, bytes: 0, giveUp };
    let isHeld = true;
    const release = () => {
      if (isHeld) this.#memory.give(requester, reception.bytes);
      isHeld = false;
    };
    this.#receptions.add(reception);
    try {
      const arriving = request.body()[Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await Promise.race([arriving.next(), givenUp]);
        if (done) return { chunks, bytes: reception.bytes, release };
        if (reception.bytes + value.byteLength > this.#limits.requestBytes) {
          throw new BodyRefusedError("payload_too_large");
        }
        if (!this.#memory.take(requester, value.byteLength)) throw new BodyRefusedError("unavailable");
        chunks.push(value);
        reception.bytes += value.byteLength;
        reception.heardMs = this.#clock.nowMs();
      }
    } catch (error) {
      release();
      throw error;
    } finally {
      this.#receptions.delete(reception);
    }
  }

  close(): void {
    this.#stopTicker();
    for (const { giveUp } of this.#receptions) giveUp(new BodyRefusedError("unavailable"));
  }

  #giveUpSlow(): void {
    const nowMs = this.#clock.nowMs();
    const { idleMs, totalMs, bytesPerSecond } = this.#limits;
    for (const { startedMs, heardMs, bytes, giveUp } of this.#receptions) {
      const isLate = nowMs - startedMs > totalMs + (bytes / bytesPerSecond) * 1000;
      if (isLate || nowMs - heardMs > idleMs) giveUp(new BodyRefusedError("request_timeout"));
    }
  }
}
