/**
 * What a call's session has said and the socket cannot take yet, in order. Audio waits here, not in
 * the socket, so that `clear` can drop it. Bounded by `queueBytesMax`, then the call is a slow
 * consumer's; above `sheddingAboveMs` partial transcripts and metrics are shed first.
 */
import type { SessionMessage } from "#media/media_host.ts";

export type OutboundItem =
  /** `endMs`: the sound that the session has said up to its end. */
  | { kind: "audio"; bytes: Uint8Array; durationMs: number; endMs: number }
  | { kind: "message"; message: SessionMessage };

export const queueBytesMax = 4 * 1024 * 1024;
const sheddingAboveMs = 1000;
/** What a message is taken to weigh while it waits as an object. */
const messageBytesEstimate = 512;

/** A partial transcript is replaced by the next one, a delta is not; metrics only inform. */
function mayBeShed(message: SessionMessage): boolean {
  if (message.type === "turn_metrics") return true;
  return message.type === "transcript" && !message.final && message.delta === undefined;
}

export class OutboundQueue {
  #items: OutboundItem[] = [];
  #head = 0;
  #saidMs = 0;
  /** Milliseconds of audio that wait. */
  audioMs = 0;
  bytes = 0;
  shedMessages = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get isFull(): boolean {
    return this.bytes > queueBytesMax;
  }

  pushAudio(bytes: Uint8Array, durationMs: number): void {
    this.#saidMs += durationMs;
    this.#items.push({ kind: "audio", bytes, durationMs, endMs: this.#saidMs });
    this.audioMs += durationMs;
    this.bytes += bytes.byteLength;
  }

  /** A `clear` drops all audio that waits, and the marks that follow that audio. */
  pushMessage(message: SessionMessage): void {
    if (message.type === "clear") this.dropAudio();
    if (this.audioMs > sheddingAboveMs && mayBeShed(message)) {
      this.shedMessages += 1;
      return;
    }
    this.#items.push({ kind: "message", message });
    this.bytes += messageBytesEstimate;
  }

  peek(): OutboundItem | undefined {
    return this.#items[this.#head];
  }

  shift(): void {
    const item = this.#items[this.#head];
    if (!item) return;
    this.#head += 1;
    this.bytes -= item.kind === "audio" ? item.bytes.byteLength : messageBytesEstimate;
    if (item.kind === "audio") this.audioMs -= item.durationMs;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 1024) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  dropAudio(): void {
    let behindAudio = false;
    const kept: OutboundItem[] = [];
    for (const item of this.#items.slice(this.#head)) {
      behindAudio ||= item.kind === "audio";
      if (item.kind === "message" && !(behindAudio && item.message.type === "mark")) kept.push(item);
    }
    this.#items = kept;
    this.#head = 0;
    this.audioMs = 0;
    this.bytes = kept.length * messageBytesEstimate;
  }
}
