/**
 * The inbound half of a call: frames and messages from the client become audio and commands for the
 * session. What the call itself must act on goes to `InputListener`.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { type ClientMessageOf, voiceLimits } from "#contracts/voice_protocol.ts";
import type { MediaSession, SessionCommand } from "#media/media_host.ts";
import { audioFromBase64, parseInbound } from "./inbound_message.ts";
import { audioMsOf, InputPacer, type PacingEvent } from "./input_pacing.ts";
import { MessageRate } from "./message_rate.ts";

export interface InputListener {
  badMessage(problem: string, ref: string | undefined): void;
  /** One bad message too many, or far too many of any kind. */
  abused(): void;
  /** A binary frame in a call that declared itself text-only. */
  audioInTextOnlyCall(): void;
  ping(timestamp: unknown): void;
  hangUp(message: ClientMessageOf<"hang_up">): void;
  pacing(event: PacingEvent, bufferedMs: number): void;
}

export class CallInput {
  readonly #format: AudioFormat;
  readonly #session: MediaSession;
  readonly #listener: InputListener;
  readonly #pacer: InputPacer;
  readonly #rate: MessageRate;
  #badMessages = 0;
  #isTextOnly = false;

  constructor(options: { nowMs: number; format: AudioFormat; session: MediaSession; listener: InputListener }) {
    this.#format = options.format;
    this.#session = options.session;
    this.#listener = options.listener;
    this.#rate = new MessageRate(options.nowMs);
    this.#pacer = new InputPacer(options.nowMs, (bytes, arrivedAtMs) => this.#session.audio(bytes, arrivedAtMs));
  }

  /** Whether audio waits: then `drain` is to be called regularly. */
  get isWaiting(): boolean {
    return this.#pacer.isWaiting;
  }

  binary(nowMs: number, bytes: Uint8Array): void {
    if (this.#rate.count(nowMs)) this.#audio(nowMs, bytes);
    else this.#listener.abused();
  }

  #audio(nowMs: number, bytes: Uint8Array): void {
    if (this.#isTextOnly) {
      this.#listener.audioInTextOnlyCall();
      return;
    }
    if (bytes.byteLength === 0) return;
    this.#reportPacing(this.#pacer.push(nowMs, bytes, audioMsOf(this.#format, bytes)));
  }

  drain(nowMs: number): void {
    this.#reportPacing(this.#pacer.drain(nowMs));
  }

  text(nowMs: number, text: string): void {
    if (!this.#rate.count(nowMs)) {
      this.#listener.abused();
      return;
    }
    const inbound = parseInbound(text);
    if (inbound.kind === "ignored") return;
    if (inbound.kind === "bad") {
      this.#bad(inbound.problem, inbound.ref);
      return;
    }
    const { message } = inbound;
    switch (message.type) {
      case "ping":
        this.#listener.ping(message.timestamp);
        return;
      case "media": {
        const audio = this.#isTextOnly ? undefined : audioFromBase64(message.payload);
        if (audio) {
          this.#audio(nowMs, audio);
          return;
        }
        this.#bad(this.#isTextOnly ? "Expected no audio in a text-only call" : "Expected base64", "media.payload");
        return;
      }
      case "hang_up":
        this.#command(message);
        this.#listener.hangUp(message);
        return;
      case "start":
        this.#isTextOnly ||= message.capabilities?.text_only === true;
        this.#command(message);
        return;
      default:
        this.#command(message);
        return;
    }
  }

  #command(command: SessionCommand): void {
    this.#session.command(command);
  }

  #bad(problem: string, ref: string | undefined): void {
    this.#badMessages += 1;
    if (this.#badMessages >= voiceLimits.badMessagesMax) this.#listener.abused();
    else this.#listener.badMessage(problem, ref);
  }

  #reportPacing(event: PacingEvent | undefined): void {
    if (event) this.#listener.pacing(event, Math.round(this.#pacer.bufferedMs));
  }
}
