/**
 * The one scheduler of all callers: every 20 ms each member gets its turn, spread over the period
 * so that they do not all send at once. A late timer is made up for at once.
 */
import { callerFrameMs } from "./caller_speech.ts";

/** Groups whose frames are sent together; one each 2 ms. */
const groupCount = 10;
const groupMs = callerFrameMs / groupCount;

export interface FrameSender {
  sendFrame(nowMs: number): void;
}

export class FrameClock {
  readonly #groups: FrameSender[][] = Array.from({ length: groupCount }, () => []);
  #timer: NodeJS.Timeout | undefined;
  #members = 0;
  #startedAtMs = 0;
  #turns = 0;

  /** From now on `member` sends a frame each 20 ms. */
  add(member: FrameSender): void {
    this.#groups[this.#members % groupCount]?.push(member);
    this.#members += 1;
  }

  start(): void {
    this.#startedAtMs = performance.now();
    this.#wait();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #wait(): void {
    const dueMs = this.#startedAtMs + (this.#turns + 1) * groupMs;
    this.#timer = setTimeout(() => this.#run(), Math.max(1, dueMs - performance.now()));
  }

  #run(): void {
    const due = Math.floor((performance.now() - this.#startedAtMs) / groupMs);
    for (; this.#turns < due; this.#turns += 1) {
      for (const member of this.#groups[this.#turns % groupCount] ?? []) member.sendFrame(performance.now());
    }
    this.#wait();
  }
}
