/**
 * The way of the agent's sound to the client: resampled, paced, cut into frames, encoded, marked.
 * One utterance at a time; after `cut` no byte of it follows, so that what is gone on with is a new one.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { frameMsFor } from "#contracts/audio_format.ts";
import type { Pcm } from "#providers/provider.ts";
import type { Encoder } from "../audio/encoder.ts";
import { OutputRate } from "./output_rate.ts";
import { type Cut, Playout } from "./playout.ts";

/** What leaves, in order. */
export interface SpeechOutputEvents {
  frame(bytes: Uint8Array, durationMs: number): void;
  mark(name: string): void;
}

export class SpeechOutput {
  readonly #format: AudioFormat;
  readonly #encoder: Encoder;
  readonly #rate: OutputRate;
  readonly #playout: Playout;
  #utterances = 0;
  #sendsMarks = true;

  /** `encoder` stays its owner's to close. */
  constructor(format: AudioFormat, leadMs: number, encoder: Encoder, events: SpeechOutputEvents) {
    this.#format = format;
    this.#encoder = encoder;
    this.#rate = new OutputRate(format.sample_rate);
    this.#playout = new Playout(
      { sampleRateHz: format.sample_rate, frameMs: frameMsFor(format), leadMs },
      {
        frame: (samples) => events.frame(encoder.encode(this.#padded(samples)), this.#durationMs(samples.length)),
        mark: (name) => {
          if (this.#sendsMarks) events.mark(name);
        },
      },
    );
  }

  /** The newest utterance, if there was any. */
  get lastUtteranceId(): string | undefined {
    return this.#utterances > 0 ? `utt_${this.#utterances}` : undefined;
  }

  /** The utterance in the air. */
  get utteranceId(): string | undefined {
    return this.#playout.utteranceId;
  }

  get hasRoom(): boolean {
    return this.#playout.hasRoom;
  }

  /** Milliseconds of the utterance so far. */
  get pushedMs(): number {
    return this.#playout.pushedMs;
  }

  /** How much of the utterance was heard, as far as is known. */
  heardMs(nowMs: number): number {
    return this.#playout.heardMs(nowMs);
  }

  /** Adds to the utterance in the air, or begins one. */
  push(pcm: Pcm): void {
    if (!this.#playout.utteranceId) this.#begin();
    this.#playout.push(this.#rate.convert(pcm));
  }

  #begin(): void {
    this.#utterances += 1;
    this.#playout.begin(`utt_${this.#utterances}`);
  }

  /** The last samples of what was pushed, which resampling holds back. */
  takeTail(): Int16Array {
    return this.#rate.takeTail();
  }

  /** The utterance ends with `tail`. */
  finish(tail: Int16Array): void {
    this.#playout.push(tail);
    this.#playout.finish();
  }

  /** Goes on with the rest of a cut utterance, as a new one. */
  goOn(rest: readonly Int16Array[], isWhole: boolean): void {
    this.#begin();
    for (const chunk of rest) this.#playout.push(chunk);
    if (isWhole) this.#playout.finish();
  }

  /** Sends what is due. */
  pump(nowMs: number): void {
    this.#playout.pump(nowMs);
  }

  /** Whether nothing is in the air, or the client has played all of it. */
  isOver(nowMs: number): boolean {
    return !this.#playout.utteranceId || this.#playout.isOver(nowMs);
  }

  /** Whether the client hears nothing at this moment. */
  isQuiet(nowMs: number): boolean {
    return this.#playout.isQuiet(nowMs);
  }

  end(nowMs: number): ReturnType<Playout["end"]> {
    return this.#playout.end(nowMs);
  }

  /** Stops at once. `audioMs`: the length of all of it, played or not. */
  cut(nowMs: number): (Cut & { audioMs: number }) | undefined {
    const cut = this.#playout.cut(nowMs);
    if (!cut) return undefined;
    const restSamples = cut.rest.reduce((sum, chunk) => sum + chunk.length, 0);
    return { ...cut, audioMs: cut.playedMs + this.#durationMs(restSamples) };
  }

  /** What resampling holds back belongs to nothing any more. */
  dropTail(): void {
    this.#rate.drop();
  }

  heardMark(name: string, cleared: boolean, nowMs: number): void {
    this.#playout.heardMark(name, cleared, nowMs);
  }

  setCapabilities(capabilities: { marks?: boolean | undefined; leadMs?: number | undefined }): void {
    if (capabilities.marks !== undefined) this.#sendsMarks = capabilities.marks;
    if (capabilities.leadMs !== undefined) this.#playout.limitLead(capabilities.leadMs);
  }

  reportUnsent(unsentMs: number): void {
    this.#playout.reportUnsent(unsentMs);
  }

  reportDelivered(audioMs: number): void {
    this.#playout.reportDelivered(audioMs);
  }

  /** @returns milliseconds of what was sent that will be sent again */
  pause(): number {
    return this.#playout.pause();
  }

  resume(): void {
    this.#playout.resume();
  }

  #durationMs(samples: number): number {
    return (samples * 1000) / this.#format.sample_rate;
  }

  /** An Opus packet is always a full frame; the other encodings end an utterance with the samples that there are. */
  #padded(samples: Int16Array): Int16Array {
    if (this.#format.encoding !== "opus" || samples.length === this.#encoder.frameSamples) return samples;
    const frame = new Int16Array(this.#encoder.frameSamples);
    frame.set(samples);
    return frame;
  }
}
