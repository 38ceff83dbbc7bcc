/**
 * The calls of this process, by id, and the one clock that drives them all: 20 ms for what waits in
 * the audio path, a second for keepalive, resume windows and deadlines.
 */
import { type EndReason, voiceLimits } from "#contracts/voice_protocol.ts";
import type { Call } from "./call.ts";
import type { Clock } from "./clock.ts";
import type { ResumeToken } from "./resume_token.ts";

const tickMs = 20;
const tockMs = 1000;
const endedLatelyMax = 256;

export class CallRegistry {
  readonly #calls = new Map<string, Call>();
  readonly #endedLately = new Map<string, ResumeToken>();
  readonly #stopTimers: readonly (() => void)[];
  #deadline: Date | undefined;
  readonly #waitingForNone: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#stopTimers = [
      clock.every(tickMs, () => {
        const nowMs = clock.nowMs();
        for (const call of this.#calls.values()) if (call.needsTicks) call.tick(nowMs);
      }),
      clock.every(tockMs, () => {
        const nowMs = clock.nowMs();
        for (const call of this.#calls.values()) call.tock(nowMs);
      }),
    ];
  }

  get size(): number {
    return this.#calls.size;
  }

  get(callId: string): Call | undefined {
    return this.#calls.get(callId);
  }

  /** The call whose client has been missing longest, and for so long that a newcomer may have its slot. */
  longestLost(nowMs: number): Call | undefined {
    let longest: { call: Call; sinceMs: number } | undefined;
    for (const call of this.#calls.values()) {
      const sinceMs = call.lostSinceMs;
      if (sinceMs === undefined || nowMs - sinceMs <= voiceLimits.lostSlotKeptS * 1000) continue;
      if (!longest || sinceMs < longest.sinceMs) longest = { call, sinceMs };
    }
    return longest?.call;
  }

  /** The token of a call that has ended lately, so that "too late" is not "unknown". */
  endedToken(callId: string): ResumeToken | undefined {
    return this.#endedLately.get(callId);
  }

  add(call: Call): void {
    this.#calls.set(call.callId, call);
  }

  remove(call: Call): void {
    if (this.#calls.get(call.callId) === call) this.#calls.delete(call.callId);
    this.#endedLately.set(call.callId, call.resumeToken);
    if (this.#endedLately.size > endedLatelyMax) this.#endedLately.delete(this.#endedLately.keys().next().value ?? "");
    if (this.#calls.size > 0) return;
    for (const resolve of this.#waitingForNone.splice(0)) resolve();
  }

  /** Tells every call that this process goes away, and each that is still beginning when it has begun. */
  drain(deadline: Date): void {
    this.#deadline = deadline;
    for (const call of [...this.#calls.values()]) call.drain(deadline);
  }

  /** For a call that was admitted before a drain and begins after it. */
  tellDeadline(call: Call): void {
    if (this.#deadline) call.drain(this.#deadline);
  }

  endAll(reason: EndReason, options: Parameters<Call["end"]>[1] = {}): void {
    for (const call of [...this.#calls.values()]) call.end(reason, options);
  }

  /** Resolves when no call is left. */
  whenEmpty(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForNone.push(resolve));
  }

  stop(): void {
    for (const stop of this.#stopTimers) stop();
  }
}
