/**
 * The outbound half of a call: numbers messages, keeps the last ones for replay, and sends what the
 * session says in its order, never more than 100 ms of audio ahead of the socket.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { bytesPerMsFor } from "#contracts/audio_format.ts";
import { type ServerMessage, voiceLimits } from "#contracts/voice_protocol.ts";
import type { SessionMessage } from "#media/media_host.ts";
import type { TransportSocket } from "../transport/transport.ts";
import { Delivery } from "./delivery.ts";
import { OutboundQueue } from "./outbound_queue.ts";
import { ReplayRing } from "./replay_ring.ts";
import { liveWithinMs, SlowConsumerWatch } from "./slow_consumer.ts";

/** Audio that may be with the socket before the rest waits where `clear` can drop it. */
const aheadMsMax = 100;
/** Text waits too when this much is unsent, so that memory stays with the bounded queue. */
const aheadBytesMax = 64 * 1024;
/** 32 kbit/s, until the call's own Opus packets tell. */
const opusBytesPerMsGuess = 4;

export class CallOutbound {
  readonly #queue = new OutboundQueue();
  readonly #ring = new ReplayRing(voiceLimits.replayMessagesMax);
  readonly #slowConsumer = new SlowConsumerWatch();
  readonly #delivery = new Delivery();
  readonly #constantBytesPerMs: number | undefined;
  #socket: TransportSocket | undefined;
  #startedAtMs: number | undefined;
  #acceptedBytes = 0;
  /** The session's sound up to here has been sent, or dropped. */
  #sentMs = 0;
  #audioBytes = 0;
  #audioMs = 0;

  constructor(format: AudioFormat) {
    this.#constantBytesPerMs = bytesPerMsFor(format);
  }

  get seq(): number {
    return this.#ring.seq;
  }

  get shedMessages(): number {
    return this.#queue.shedMessages;
  }

  /** Whether anything waits to be sent, or to be known as delivered: then `flush` is to be called regularly. */
  get isBacklogged(): boolean {
    return this.#queue.length > 0 || (this.#socket !== undefined && this.#delivery.isWatching(this.#sentMs));
  }

  /** How much of the session's sound the client has taken, in milliseconds; undefined where it does not tell. */
  get deliveredMs(): number | undefined {
    return this.#delivery.takenMs;
  }

  get isOverfull(): boolean {
    return this.#queue.isFull;
  }

  /** `t` counts from here; until then everything waits, so that `call_started` is the first. */
  start(nowMs: number): void {
    this.#startedAtMs = nowMs;
  }

  /** Sends over `socket` from now on; undefined while the link is lost. */
  attach(socket: TransportSocket | undefined): void {
    this.#socket = socket;
    this.#slowConsumer.reset();
  }

  /** Asks a new link whether it tells what was delivered. */
  beginDelivery(nowMs: number): void {
    this.#socket?.ping(this.#delivery.begin(nowMs, this.#sentMs));
  }

  /** @returns whether more is known to be delivered */
  pong(nowMs: number, payload: string): boolean {
    return this.#delivery.pong(nowMs, payload);
  }

  /** What waits of the session's sound comes again. */
  dropAudio(): void {
    this.#queue.dropAudio();
  }

  /** Replays what a returning client has not seen. @returns how many messages are no longer held */
  replay(lastSeq: number): number {
    const { texts, missed } = this.#ring.since(lastSeq);
    for (const text of texts) this.#write(text);
    return missed;
  }

  /** Sends the transport's own message at once, past whatever audio waits. */
  sendNow(nowMs: number, message: ServerMessage): void {
    const { type, ...fields } = message;
    const seq = this.#ring.seq + 1;
    const t = Math.max(0, Math.round(nowMs - (this.#startedAtMs ?? nowMs)));
    const text = JSON.stringify({ type, seq, t, ...fields });
    this.#ring.push(seq, text);
    this.#write(text);
  }

  message(nowMs: number, message: SessionMessage): void {
    this.#queue.pushMessage(message);
    this.flush(nowMs);
  }

  audio(nowMs: number, bytes: Uint8Array, durationMs: number): void {
    this.#queue.pushAudio(bytes, durationMs);
    this.flush(nowMs);
  }

  /** Sends what may leave. While the link is lost text is numbered and kept for replay, audio waits. */
  flush(nowMs: number): void {
    if (this.#startedAtMs === undefined) return;
    const isMarked = this.#flushQueue(nowMs);
    const payload = this.#socket && this.#delivery.due(nowMs, this.#sentMs, isMarked);
    if (payload) this.#socket?.ping(payload);
  }

  /** @returns whether a mark was sent: its sound is asked for at once */
  #flushQueue(nowMs: number): boolean {
    let isMarked = false;
    for (let item = this.#queue.peek(); item; item = this.#queue.peek()) {
      const unsentBytes = this.#socketBytes();
      if (item.kind === "audio") {
        if (!this.#socket || unsentBytes > aheadMsMax * this.#bytesPerMs()) break;
        this.#queue.shift();
        this.#sentMs = item.endMs;
        this.#acceptedBytes += item.bytes.byteLength;
        this.#audioBytes += item.bytes.byteLength;
        this.#audioMs += item.durationMs;
        this.#socket.sendBinary(item.bytes);
      } else {
        if (unsentBytes > aheadBytesMax) break;
        this.#queue.shift();
        this.sendNow(nowMs, item.message);
        isMarked ||= item.message.type === "mark";
      }
    }
    return isMarked;
  }

  /** At the call's end: what waits is sent without regard to the backlog, or dropped with its audio. */
  finish(nowMs: number, options: { withAudio: boolean }): void {
    if (!options.withAudio) this.#queue.dropAudio();
    for (let item = this.#queue.peek(); item; item = this.#queue.peek()) {
      this.#queue.shift();
      if (item.kind === "message") this.sendNow(nowMs, item.message);
      else this.#socket?.sendBinary(item.bytes);
    }
  }

  /** Milliseconds of audio between the session and the kernel. */
  unsentMs(): number {
    return this.#queue.audioMs + this.#socketBytes() / this.#bytesPerMs();
  }

  /** Whether the client has stopped to take what is sent, as far as its stack tells. */
  isStalled(nowMs: number): boolean {
    return this.#socket !== undefined && this.#delivery.isStalled(nowMs);
  }

  unsentBytes(): number {
    return this.#queue.bytes + this.#socketBytes();
  }

  isTooSlow(nowMs: number, frameAtMs: number): boolean {
    if (!this.#socket) return false;
    if (this.#delivery.isGivenUp(nowMs) && nowMs - frameAtMs < liveWithinMs) return true;
    const unsentBytes = this.unsentBytes();
    return this.#slowConsumer.isTooSlow(nowMs, {
      unsentMs: this.unsentMs(),
      unsentBytes,
      acceptedBytes: this.#acceptedBytes + this.#queue.bytes,
      frameAtMs,
    });
  }

  #write(text: string): void {
    if (!this.#socket) return;
    this.#acceptedBytes += text.length;
    this.#socket.sendText(text);
  }

  #socketBytes(): number {
    return this.#socket?.unsentBytes() ?? 0;
  }

  #bytesPerMs(): number {
    if (this.#constantBytesPerMs !== undefined) return this.#constantBytesPerMs;
    return this.#audioMs > 0 ? this.#audioBytes / this.#audioMs : opusBytesPerMsGuess;
  }
}
