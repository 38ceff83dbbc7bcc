/**
 * The caller's side of the floor: decodes what arrives, fills gaps with silence, detects speech
 * and keeps the utterance in the making with the 300 ms before its onset, at the input's own rate.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import type { Pcm } from "#providers/provider.ts";
import { BadPacketWatch } from "../audio/bad_packets.ts";
import type { Decoder } from "../audio/decoder.ts";
import { createResampler, type Resampler } from "../audio/resampler.ts";
import { createSilenceFiller, type SilenceFiller } from "../audio/silence_filler.ts";
import { createVad, type VadEngine } from "./vad/create_vad.ts";
import { createSpeechDetector, type SpeechDetector, speechPrefixMs } from "./vad/speech_detector.ts";
import type { Vad } from "./vad/vad.ts";

/** History kept while nobody speaks: the prefix, and what detection takes. */
const historyMs = 1000;
/** Input is worked on in pieces of at most this length, however it came. */
const pieceMs = 100;

export interface CallerAudioOptions {
  format: AudioFormat;
  vad: VadEngine;
  turnSensitivity: "auto" | "low" | "medium" | "high";
}

export interface Voice {
  /** Offsets in the input audio: the onset, and the end of the newest speech. */
  startMs: number;
  endMs: number;
  /** Speech in it, pauses not counted, and the silence since. */
  speechMs: number;
  silenceMs: number;
}

export interface CallerAudioEvents {
  /** One window while speech is going on, its trailing silence included. */
  voice(voice: Voice): void;
  /** Speech as it comes, from its prefix on, once it is confirmed. The samples are the receiver's to keep. */
  speech(pcm: Pcm): void;
  /** Everything that comes, silence too. The samples are the receiver's to keep. */
  everything?(pcm: Pcm): void;
  /** Much of what comes in cannot be decoded. */
  undecodable(): void;
}

export class CallerAudio {
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
  #isClosed = false;
  /** What comes in counts as silence. */
  isMuted = false;
  /** Samples of input so far, fillings included. */
  #heard = 0;
  /** The newest samples, up to `#heard`: the history, or the utterance in the making. */
  #tape: Int16Array;
  #tapeLength = 0;
  /** Speech in the making: its first sample, and up to which it was passed on. */
  #speech: { from: number; confirmed: boolean; written: number } | undefined;
  #newestVoice: Voice | undefined;
  readonly #filler: SilenceFiller;
  readonly #badPackets = new BadPacketWatch();

  /** `decoder` stays its owner's to close. */
  constructor(options: CallerAudioOptions, decoder: Decoder, events: CallerAudioEvents, nowMs: number) {
    this.#events = events;
    this.#rateHz = options.format.sample_rate;
    this.#decoder = decoder;
    this.#vad = createVad(options.vad);
    this.#resampler = createResampler(this.#rateHz, this.#vad.sampleRateHz);
    this.#detector = createSpeechDetector({ sensitivity: options.turnSensitivity });
    this.#window = new Int16Array(this.#vad.windowSamples);
    this.#windowMs = (this.#vad.windowSamples * 1000) / this.#vad.sampleRateHz;
    this.#tape = new Int16Array(this.#samples(2 * historyMs));
    this.#silence = new Int16Array(this.#samples(pieceMs));
    this.#filler = createSilenceFiller(nowMs);
  }

  /** Takes what arrived; muted input counts as silence. Answers its length in milliseconds. */
  hear(bytes: Uint8Array, nowMs: number): number {
    const samples = this.#decoder.decode(bytes);
    const durationMs = this.#ms(samples.length);
    if (this.#badPackets.heard(this.#decoder.badPackets, durationMs)) this.#events.undecodable();
    this.#filler.arrived(nowMs, durationMs);
    const piece = this.#silence.length;
    for (let at = 0; at < samples.length && !this.#isClosed; at += piece) {
      const part = samples.subarray(at, Math.min(at + piece, samples.length));
      this.#take(this.isMuted ? this.#silence.subarray(0, part.length) : part);
    }
    return durationMs;
  }

  /** Fills a gap in the input with silence, so that a turn ends although nothing comes. True once when a gap is long. */
  fillGap(nowMs: number): boolean {
    const isSpeech = this.#speech !== undefined && !this.isMuted;
    let missing = this.#samples(this.#filler.takeSilenceMs(nowMs, isSpeech));
    for (; missing > 0 && !this.#isClosed; missing -= this.#silence.length) {
      this.#take(this.#silence.subarray(0, Math.min(missing, this.#silence.length)));
    }
    return this.#filler.takeNoInputWarning(nowMs);
  }

  /** The time of a lost link is no gap. */
  linkIsBack(nowMs: number): void {
    this.#filler.restart(nowMs);
  }

  #take(samples: Int16Array): void {
    this.#record(samples);
    this.#heard += samples.length;
    this.#events.everything?.({ samples: samples.slice(), sampleRateHz: this.#rateHz });
    const heard = this.#resampler.process(samples);
    for (let at = 0; at < heard.length && !this.#isClosed; ) {
      const take = Math.min(this.#window.length - this.#windowFill, heard.length - at);
      this.#window.set(heard.subarray(at, at + take), this.#windowFill);
      this.#windowFill += take;
      at += take;
      if (this.#windowFill === this.#window.length) this.#detect();
    }
    if (this.#speech?.confirmed && !this.#isClosed) this.#passOn(this.#speech);
  }

  /** One window of detection. */
  #detect(): void {
    this.#windowFill = 0;
    const heard = this.#detector.update(this.#vad.process(this.#window), this.#windowMs);
    if (heard.phase === "silence") return;
    if (!this.#speech) {
      const from = Math.max(this.#heard - this.#tapeLength, this.#samples(Math.max(0, heard.startMs - speechPrefixMs)));
      this.#speech = { from, confirmed: false, written: from };
    }
    const { startMs, stopMs, speechMs, silenceMs } = heard;
    this.#newestVoice = { startMs, endMs: stopMs, speechMs, silenceMs };
    this.#events.voice(this.#newestVoice);
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

  /** What the newest window of the speech in the making said; undefined while nobody speaks. */
  get newestVoice(): Voice | undefined {
    return this.#speech && this.#newestVoice;
  }

  /** The utterance up to `endMs`, with its prefix, and what came after it. */
  takeUtterance(endMs: number): Pcm & { tail: Int16Array } {
    const from = this.#speech?.from ?? this.#heard;
    const to = Math.max(from, Math.min(this.#heard, this.#samples(endMs)));
    const [samples, tail] = [this.#read(from, to), this.#read(to, this.#heard)];
    this.forgetSpeech();
    return { samples, tail, sampleRateHz: this.#rateHz };
  }

  /** What was heard was no speech, or is dealt with. */
  forgetSpeech(): void {
    this.#speech = undefined;
    this.#detector.endUtterance();
    this.#keepHistory();
  }

  close(): void {
    this.#isClosed = true;
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
