/**
 * Input audio at up to twice real time, with a second of burst. What comes faster waits here:
 * above 10 s the client is asked to pause, above 12 s the oldest is dropped, and a client that is
 * still at it 30 s later is flooding. Pure: the clock is an argument.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { bytesPerMsFor } from "#contracts/audio_format.ts";

export type PacingEvent = "pause" | "resume" | "overrun" | "flood";

interface Chunk {
  bytes: Uint8Array;
  durationMs: number;
  arrivedAtMs: number;
}

const rate = 2;
const burstMs = 1000;
const pauseAboveMs = 10_000;
const resumeBelowMs = 5000;
const bufferedMsMax = 12_000;
const floodAfterMs = 30_000;

export class InputPacer {
  readonly #queue: Chunk[] = [];
  readonly #deliver: (bytes: Uint8Array, arrivedAtMs: number) => void;
  /** Milliseconds of audio that may pass now; in debt after a large message. */
  #allowanceMs = burstMs;
  #refilledAtMs: number;
  #paused = false;
  #overrunSinceMs: number | undefined;
  bufferedMs = 0;

  constructor(nowMs: number, deliver: (bytes: Uint8Array, arrivedAtMs: number) => void) {
    this.#refilledAtMs = nowMs;
    this.#deliver = deliver;
  }

  /** Whether `drain` has work to do. */
  get isWaiting(): boolean {
    return this.#queue.length > 0;
  }

  push(nowMs: number, bytes: Uint8Array, durationMs: number): PacingEvent | undefined {
    this.#refill(nowMs);
    if (this.#queue.length === 0 && this.#allowanceMs > 0) {
      this.#allowanceMs -= durationMs;
      this.#deliver(bytes, nowMs);
      return undefined;
    }
    this.#queue.push({ bytes, durationMs, arrivedAtMs: nowMs });
    this.bufferedMs += durationMs;
    if (!this.#paused && this.bufferedMs > pauseAboveMs) {
      this.#paused = true;
      return "pause";
    }
    let dropped = false;
    while (this.bufferedMs > bufferedMsMax && this.#queue.length > 1) {
      this.bufferedMs -= this.#queue.shift()?.durationMs ?? 0;
      dropped = true;
    }
    if (!dropped) return undefined;
    if (this.#overrunSinceMs === undefined) {
      this.#overrunSinceMs = nowMs;
      return "overrun";
    }
    return nowMs - this.#overrunSinceMs >= floodAfterMs ? "flood" : undefined;
  }

  /** Delivers what may pass by now. */
  drain(nowMs: number): PacingEvent | undefined {
    this.#refill(nowMs);
    while (this.#allowanceMs > 0) {
      const chunk = this.#queue.shift();
      if (!chunk) break;
      this.#allowanceMs -= chunk.durationMs;
      this.bufferedMs -= chunk.durationMs;
      // It is heard now: its latency starts here, not where the client ran ahead.
      this.#deliver(chunk.bytes, nowMs);
    }
    if (!this.#paused || this.bufferedMs > resumeBelowMs) return undefined;
    this.#paused = false;
    this.#overrunSinceMs = undefined;
    return "resume";
  }

  #refill(nowMs: number): void {
    this.#allowanceMs = Math.min(burstMs, this.#allowanceMs + (nowMs - this.#refilledAtMs) * rate);
    this.#refilledAtMs = nowMs;
  }
}

/** Milliseconds of audio in a message of this format. */
export function audioMsOf(format: AudioFormat, bytes: Uint8Array): number {
  const bytesPerMs = bytesPerMsFor(format);
  return bytesPerMs === undefined ? opusPacketMs(bytes) : bytes.byteLength / bytesPerMs;
}

/** Duration of one Opus packet from its table-of-contents byte (RFC 6716, section 3.1 and 3.2). */
export function opusPacketMs(packet: Uint8Array): number {
  const toc = packet[0];
  if (toc === undefined) return 0;
  const config = toc >> 3;
  const silkMs = [10, 20, 40, 60][config & 3] ?? 20;
  const celtMs = [2.5, 5, 10, 20][config & 3] ?? 20;
  const frameMs = config < 12 ? silkMs : config < 16 ? (config & 1 ? 20 : 10) : celtMs;
  const code = toc & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : (packet[1] ?? 1) & 0x3f;
  // A packet holds at most 120 ms; a made-up count must not buy more.
  return Math.min(120, frameMs * Math.max(1, frames));
}
