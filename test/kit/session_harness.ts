/**
 * A call on a virtual clock, for tests and golden transcripts: a caller who speaks, types and is
 * silent at exact times, a player that echoes marks, and everything that the session sent, in order.
 */
import { type AudioFormat, audioFormatFor } from "#contracts/audio_format.ts";
import type { CallEnd, CallProgress } from "#contracts/call_record.ts";
import type { Credentials } from "#contracts/internal_calls.ts";
import { type CallConfig, completeConfig, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { Usage } from "#contracts/voice_protocol.ts";
import { createEncoder, type Encoder } from "#media/audio/encoder.ts";
import type { VadEngine } from "#media/hearing/vad/create_vad.ts";
import type { MediaSession, SessionCommand, SessionMessage, SessionMessageType } from "#media/media_host.ts";
import { createSession } from "#media/session/call_session.ts";
import type { RemoteTools } from "#media/tools/remote_tools.ts";
import type { Tool } from "#media/tools/tool.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import { type CallStages, loadStages } from "#providers/stages.ts";
import { VirtualClock } from "./virtual_clock.ts";

/** What the session sent: a message or a frame of audio, `atMs` after the call began. */
export type Sent =
  | { kind: "message"; atMs: number; message: SessionMessage }
  | { kind: "audio"; atMs: number; frame: Uint8Array; durationMs: number };

export interface HarnessOptions {
  config?: VoiceAgentConfig;
  /** Merged over the completed config. */
  complete?: Partial<CallConfig>;
  inputFormat?: AudioFormat;
  outputFormat?: AudioFormat;
  clientBufferMs?: number;
  vad?: VadEngine;
  /** In place of the configured one. */
  llm?: LanguageModel;
  /** Stages that may reach vendors, loaded for the configuration. */
  stages?: CallStages;
  credentials?: Credentials;
  remoteTools?: RemoteTools;
  /** Beside those of the configuration. */
  tools?: readonly Tool[];
  /** The caller's device plays what it gets in real time and echoes marks; default true. */
  echoesMarks?: boolean;
  initialMessages?: readonly { role: "user" | "agent"; text: string }[];
}

const builtInStages = await loadStages();

/** The caller sends 20 ms frames, as a client does. */
const frameMs = 20;

export class SessionHarness {
  readonly clock = new VirtualClock(0);
  readonly sent: Sent[] = [];
  readonly records: Omit<CallProgress, "call_id">[] = [];
  readonly session: MediaSession;
  end: { end: CallEnd; usage: Usage; atMs: number } | undefined;
  /** How often the session has said that what waits comes again. */
  droppedUnsent = 0;
  /** What the session broke; a test that runs it is told by `run`. */
  fault: unknown;
  /** Whether the caller's device sends audio; off for a caller who only types. */
  sendsAudio = true;
  readonly #format: AudioFormat;
  readonly #encoder: Encoder;
  readonly #player: Player;
  #source: ((index: number) => number) | undefined;
  #sampleIndex = 0;

  constructor(options: HarnessOptions = {}) {
    const inputFormat = options.inputFormat ?? audioFormatFor();
    const stages = options.stages ?? builtInStages;
    this.#format = inputFormat;
    this.#encoder = createEncoder(inputFormat);
    this.#player = new Player(options.echoesMarks ?? true);
    this.session = createSession(
      {
        callId: "00000000-0000-4000-8000-000000000001",
        config: { ...completeConfig(options.config ?? {}, defaultProviders), ...options.complete },
        inputFormat,
        outputFormat: options.outputFormat ?? inputFormat,
        clientBufferMs: options.clientBufferMs ?? 400,
        initialMessages: options.initialMessages ?? [],
        ...(options.credentials && { credentials: options.credentials }),
      },
      {
        audio: (frame, durationMs) => {
          this.sent.push({ kind: "audio", atMs: this.clock.nowMs(), frame, durationMs });
          this.#player.audio(durationMs, this.clock.nowMs());
        },
        dropUnsent: () => {
          this.droppedUnsent += 1;
        },
        message: (message) => {
          this.sent.push({ kind: "message", atMs: this.clock.nowMs(), message });
          this.#player.message(message, this.clock.nowMs());
        },
        record: (progress) => this.records.push(progress),
        ended: (end, usage) => {
          this.end = { end, usage, atMs: this.clock.nowMs() };
        },
      },
      {
        scheduler: this.clock,
        stages: {
          unreachable: stages.unreachable,
          stt: (settings, deps) => stages.stt(settings, { ...deps, waits: this.clock }),
          llm: (settings, deps) => options.llm ?? stages.llm(settings, { ...deps, waits: this.clock }),
          tts: (settings, deps) => stages.tts(settings, { ...deps, waits: this.clock }),
        },
        vad: options.vad ?? "energy",
        ...(options.remoteTools && { remoteTools: options.remoteTools }),
        ...(options.tools && { tools: options.tools }),
        onFault: (_callId, cause) => {
          this.fault = cause;
        },
      },
    );
  }

  /** The caller speaks for `ms`. */
  async speak(ms: number): Promise<void> {
    this.#source = voiceSample;
    await this.run(ms);
    this.#source = undefined;
  }

  /** Time goes by; the caller is silent unless `speak` runs it. `ms` in whole frames of 20 ms. */
  async run(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += frameMs) {
      await this.clock.advance(frameMs);
      if (this.fault) throw this.fault;
      if (this.end) return;
      if (this.sendsAudio) this.session.audio(this.#nextFrame(), this.clock.nowMs());
      for (const mark of this.#player.due(this.clock.nowMs())) this.session.command(mark);
    }
    await this.clock.advance(0);
  }

  /** Sends a client message and lets it take effect. */
  async command(command: SessionCommand): Promise<void> {
    this.session.command(command);
    await this.clock.advance(0);
  }

  /** Runs until `type` was sent `count` times in all. @throws Error after `limitMs` */
  async runUntil(type: SessionMessageType, count = 1, limitMs = 60_000): Promise<void> {
    for (let passedMs = 0; this.messages(type).length < count; passedMs += frameMs) {
      if (passedMs >= limitMs)
        throw new Error(`Expected ${count} ${type} within ${limitMs} ms, got ${this.messages(type).length}`);
      await this.run(frameMs);
    }
  }

  messages<T extends SessionMessageType>(type: T): Extract<SessionMessage, { type: T }>[] {
    return this.allMessages().filter(
      (message): message is Extract<SessionMessage, { type: T }> => message.type === type,
    );
  }

  allMessages(): SessionMessage[] {
    return this.sent.flatMap((sent) => (sent.kind === "message" ? [sent.message] : []));
  }

  /** Everything that was sent, runs of audio as one entry, in short: `audio 1200`, `state listening`, `clear user_speech` … */
  story(): string[] {
    const story: string[] = [];
    let audioMs = 0;
    for (const sent of this.sent) {
      if (sent.kind === "audio") {
        audioMs += sent.durationMs;
        continue;
      }
      if (audioMs > 0) story.push(`audio ${Math.round(audioMs)}`);
      audioMs = 0;
      story.push(inShort(sent.message));
    }
    if (audioMs > 0) story.push(`audio ${Math.round(audioMs)}`);
    return story;
  }

  /** All audio bytes sent, joined. */
  audioBytes(): Buffer {
    return Buffer.concat(this.sent.flatMap((sent) => (sent.kind === "audio" ? [sent.frame] : [])));
  }

  #nextFrame(): Uint8Array {
    const samples = new Int16Array((this.#format.sample_rate * frameMs) / 1000);
    if (this.#source) {
      const step = 16_000 / this.#format.sample_rate;
      for (let i = 0; i < samples.length; i += 1) samples[i] = this.#source((this.#sampleIndex + i) * step);
    }
    this.#sampleIndex += samples.length;
    return this.#encoder.encode(samples);
  }
}

/** A vowel-like sound at about -15 dBFS: a pitch of 120 Hz, three formants' worth of harmonics, syllables at 4 Hz. */
export function voiceSample(index: number): number {
  const t = index / 16_000;
  const syllable = 0.75 + 0.25 * Math.sin(2 * Math.PI * 4 * t);
  let sum = 0;
  for (const [harmonic, weight] of [
    [1, 0.5],
    [2, 0.4],
    [5, 0.5],
    [6, 0.4],
    [10, 0.2],
    [20, 0.1],
  ] as const) {
    sum += weight * Math.sin(2 * Math.PI * 120 * harmonic * t);
  }
  return Math.round(4000 * syllable * sum);
}

/** One message in a few words. */
function inShort(message: SessionMessage): string {
  switch (message.type) {
    case "state":
      return `state ${message.state}`;
    case "transcript":
      return `transcript ${message.role} ${message.final ? "final" : "partial"}: ${message.text}`;
    case "clear":
      return `clear ${message.utterance_id} ${message.reason}`;
    case "mark":
      return `mark ${message.name}`;
    case "agent_speech_started":
      return `agent_speech_started ${message.utterance_id} ${message.source}`;
    case "agent_speech_done":
      return `agent_speech_done ${message.utterance_id}${message.interrupted ? " interrupted" : ""}`;
    case "truncated":
      return `truncated ${message.utterance_id}: ${message.spoken_text}`;
    case "user_speech_started":
    case "user_speech_stopped":
      return `${message.type} ${message.turn_id}`;
    case "turn_metrics":
      return `turn_metrics ${message.turn_id}`;
    case "warning":
    case "error":
      return `${message.type} ${message.code}`;
    case "tool_event":
      return `tool_event ${message.name} ${message.phase}`;
    default:
      return message.type;
  }
}

/** Plays in real time from the first frame on, and says which marks were reached. */
class Player {
  readonly #echoes: boolean;
  #playedUntilMs = 0;
  #marks: { name: string; atMs: number; cleared: boolean }[] = [];

  constructor(echoes: boolean) {
    this.#echoes = echoes;
  }

  audio(durationMs: number, nowMs: number): void {
    this.#playedUntilMs = Math.max(this.#playedUntilMs, nowMs) + durationMs;
  }

  message(message: SessionMessage, nowMs: number): void {
    if (message.type === "mark")
      this.#marks.push({ name: message.name, atMs: Math.max(nowMs, this.#playedUntilMs), cleared: false });
    if (message.type !== "clear") return;
    this.#playedUntilMs = nowMs;
    for (const mark of this.#marks) {
      if (mark.atMs > nowMs) Object.assign(mark, { atMs: nowMs, cleared: true });
    }
  }

  due(nowMs: number): Extract<SessionCommand, { type: "mark" }>[] {
    if (!this.#echoes) return [];
    const due = this.#marks.filter(({ atMs }) => atMs <= nowMs);
    this.#marks = this.#marks.filter(({ atMs }) => atMs > nowMs);
    return due.map(({ name, cleared }) => ({ type: "mark", name, ...(cleared && { cleared }) }));
  }
}
