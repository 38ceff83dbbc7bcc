/**
 * The caller's side of the floor: decodes what arrives, fills gaps with silence, detects speech
 * and keeps the utterance in the making with the 300 ms before its onset, at the input's own rate.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { createDecoder, type Decoder } from "./audio/decoder.ts";
import { createResampler, type Resampler } from "./audio/resampler.ts";
import type { Pcm } from "./providers/provider.ts";
import { createSpeechDetector, type SpeechDetector } from "./vad/speech_detector.ts";
import { createVad, type Vad, type VadEngine } from "./vad/vad.ts";

/** What was heard before the onset belongs to the utterance: soft first consonants. */
export const prefixMs = 300;
/** History kept while nobody speaks: the prefix, and what detection takes. */
const historyMs = 1000;
/** Input is worked on in pieces of at most this length, however it came. */
const pieceMs = 100;
/** A gap longer than this is filled with silence, so that a turn ends although nothing comes. */
const gapMs = 200;

export interface CallerAudioOptions {
  format: AudioFormat;
  vad: VadEngine;
  turnSensitivity: "auto" | "low" | "medium" | "high";
  /** Filling ends after this long without input, and is reported. */
  noInputMs: number;
}

export interface Voice {
  /** Offsets in the input audio: onset, end of the newest voiced window, and the silence since. */
  startMs: number;
  endMs: number;
  silenceMs: number;
}

export interface CallerAudioEvents {
  /** One window while speech is going on, its trailing silence included. */
  voice(voice: Voice): void;
  /** Speech as it comes, from its prefix on, once it is confirmed. The samples are the receiver's to keep. */
  speech(pcm: Pcm): void;
}

export class CallerAudio {
  readonly #options: CallerAudioOptions;
  readonly #events: CallerAudioEvents;
  readonly #decoder: Decoder;
  readonly #resampler: Resampler;
  readonly #vad: Vad;
  readonly #detector: SpeechDetector;
  readonly #window: Int16Array;
  readonly #windowMs: number;
  readonly #rateHz: number;
  readonly #silence: Int16Array;
  #windowFill = 0;
  /** Windows that went through detection, in milliseconds. */
  #detectedMs = 0;
  /** Samples of input so far, fillings included. */
  #heard = 0;
  /** The newest samples, up to `#heard`: the history, or the utterance in the making. */
  #tape: Int16Array;
  #tapeLength = 0;
  #speech: { startMs: number; endMs: number; from: number; confirmed: boolean; written: number } | undefined;
  #lastInputMs: number;
  #filledMs = 0;
  #isReportedSilent = false;

  constructor(options: CallerAudioOptions, events: CallerAudioEvents, nowMs: number) {
    this.#options = options;
    this.#events = events;
    this.#rateHz = options.format.sample_rate;
    this.#decoder = createDecoder(options.format);
    this.#vad = createVad(options.vad);
    this.#resampler = createResampler(this.#rateHz, this.#vad.sampleRateHz);
    this.#detector = createSpeechDetector({ turnSensitivity: options.turnSensitivity });
    this.#window = new Int16Array(this.#vad.windowSamples);
    this.#windowMs = (this.#vad.windowSamples * 1000) / this.#vad.sampleRateHz;
    this.#tape = new Int16Array(this.#samples(2 * historyMs));
    this.#silence = new Int16Array(this.#samples(pieceMs));
    this.#lastInputMs = nowMs;
  }

  /** Takes what arrived; muted input counts as silence. Answers its length in milliseconds. */
  hear(bytes: Uint8Array, isMuted: boolean, nowMs: number): number {
    const samples = this.#decoder.decode(bytes);
    this.#lastInputMs = nowMs;
    this.#filledMs = 0;
    this.#isReportedSilent = false;
    const piece = this.#silence.length;
    for (let at = 0; at < samples.length; at += piece) {
      const part = samples.subarray(at, Math.min(at + piece, samples.length));
      this.#take(isMuted ? this.#silence.subarray(0, part.length) : part);
    }
    return this.#ms(samples.length);
  }

  /** Fills a gap in the input. True once when nothing has come for `noInputMs`. */
  fillGap(nowMs: number): boolean {
    const missingMs = nowMs - this.#lastInputMs;
    if (missingMs <= gapMs) return false;
    const dueMs = Math.min(missingMs, this.#options.noInputMs);
    for (; this.#filledMs + this.#windowMs <= dueMs; this.#filledMs += this.#windowMs) {
      this.#take(this.#silence.subarray(0, this.#samples(this.#windowMs)));
    }
    if (missingMs < this.#options.noInputMs || this.#isReportedSilent) return false;
    this.#isReportedSilent = true;
    return true;
  }

  /** The time of a lost link is no gap. */
  linkIsBack(nowMs: number): void {
    this.#lastInputMs = nowMs;
    this.#filledMs = 0;
  }

  #take(samples: Int16Array): void {
    this.#record(samples);
    this.#heard += samples.length;
    const heard = this.#resampler.process(samples);
    for (let at = 0; at < heard.length; ) {
      const take = Math.min(this.#window.length - this.#windowFill, heard.length - at);
      this.#window.set(heard.subarray(at, at + take), this.#windowFill);
      this.#windowFill += take;
      at += take;
      if (this.#windowFill === this.#window.length) this.#detect();
    }
    if (this.#speech?.confirmed) this.#passOn(this.#speech);
  }

  /** One window of detection. */
  #detect(): void {
    this.#windowFill = 0;
    this.#detectedMs += this.#windowMs;
    const update = this.#detector.update(this.#vad.process(this.#window), this.#windowMs);
  }

  /** Appends to the tape; outside of speech its older half is given up when it is full. */
  #record(samples: Int16Array): void {
    if (this.#tapeLength + samples.length > this.#tape.length) {
      if (this.#speech) {
        const grown = new Int16Array(this.#tape.length * 2);
        grown.set(this.#tape.subarray(0, this.#tapeLength));
        this.#tape = grown;
      } else this.#keepHistory();
    }
    this.#tape.set(samples, this.#tapeLength);
    this.#tapeLength += samples.length;
  }

  #keepHistory(): void {
    const keep = Math.min(this.#samples(historyMs), this.#tapeLength);
    const kept = this.#tape.subarray(this.#tapeLength - keep, this.#tapeLength);
    if (this.#tape.length > this.#samples(2 * historyMs)) {
      const tape = new Int16Array(this.#samples(2 * historyMs));
      tape.set(kept);
      this.#tape = tape;
    } else this.#tape.copyWithin(0, this.#tapeLength - keep, this.#tapeLength);
    this.#tapeLength = keep;
  }

  /** The speech counts: it is passed on from its prefix. */
  confirmSpeech(): void {
    if (this.#speech) this.#speech.confirmed = true;
  }

  #passOn(speech: { written: number }): void {
    if (this.#heard <= speech.written) return;
    const samples = this.#read(speech.written, this.#heard);
    speech.written = this.#heard;
    this.#events.speech({ samples, sampleRateHz: this.#rateHz });
  }

  /** A copy of the samples `from`…`to`, counted from the start of the call, as far as the tape still has them. */
  #read(from: number, to: number): Int16Array {
    const tapeStart = this.#heard - this.#tapeLength;
    return this.#tape.slice(Math.max(0, from - tapeStart), Math.max(0, to - tapeStart));
  }

  /** The utterance up to `endMs`, with its prefix. */
  takeUtterance(endMs: number): Pcm {
    const from = this.#speech?.from ?? this.#heard;
    const samples = this.#read(from, Math.min(this.#heard, this.#samples(endMs)));
    this.forgetSpeech();
    return { samples, sampleRateHz: this.#rateHz };
  }

  /** What was heard was no speech, or is dealt with. */
  forgetSpeech(): void {
    this.#speech = undefined;
    this.#keepHistory();
  }

  close(): void {
    this.#decoder.close();
    this.#resampler.close();
    this.#vad.close();
  }

  #ms(samples: number): number {
    return (samples * 1000) / this.#rateHz;
  }

  #samples(ms: number): number {
    return Math.round((ms * this.#rateHz) / 1000);
  }
}
