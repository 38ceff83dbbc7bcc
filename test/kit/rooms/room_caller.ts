/**
 * A caller in a LiveKit room, made with the native client: joins with a token as a customer's program
 * would, speaks into its microphone track, and keeps what it hears and is told.
 */
import {
  AudioFrame,
  AudioSource,
  AudioStream,
  LocalAudioTrack,
  Room,
  RoomEvent,
  TrackKind,
  TrackPublishOptions,
  TrackSource,
} from "@livekit/rtc-node";
import type { ClientMessage, SentMessage, ServerMessageType } from "#contracts/voice_protocol.ts";
import type { CallDriver, Line } from "../../golden/golden_call.ts";
import { patienceMs } from "../patience.ts";
import { voiceSample } from "../session_harness.ts";

const rateHz = 16_000;
const frameMs = 20;
const frameSamples = (rateHz * frameMs) / 1000;
/** RMS of 16-bit samples: above it somebody speaks. */
const audibleAbove = 200;

export interface RoomTicket {
  token: string;
  url: string;
}

export interface HeardFrame {
  atMs: number;
  rms: number;
  samples: Int16Array;
}

export class RoomCaller implements CallDriver {
  readonly room = new Room();
  /** What the agent said in `voice.v1`, with the caller's clock. */
  readonly lines: Line[] = [];
  readonly heard: HeardFrame[] = [];
  /** Text streams by topic, as stock LiveKit interfaces read them. */
  readonly streams: { topic: string; text: string; from: string; attributes: Record<string, string> }[] = [];
  readonly agentStates: string[] = [];
  /** Whether the server has ended this visit. */
  isDisconnected = false;
  readonly #source = new AudioSource(rateHz, 1, 1000);
  readonly #hearing: ReadableStreamDefaultReader<AudioFrame>[] = [];
  readonly #waiters = new Set<() => void>();
  #startedAtMs = performance.now();
  #framesSent = 0;
  #voice: ((sample: number) => number) | undefined;
  #isGone = false;
  #unpublished = true;

  static async join(ticket: RoomTicket, options: { microphone?: boolean } = {}): Promise<RoomCaller> {
    const caller = new RoomCaller();
    caller.#listen();
    await caller.room.connect(ticket.url, ticket.token, { autoSubscribe: true, dynacast: false });
    caller.#startedAtMs = performance.now();
    if (options.microphone !== false) await caller.#publish();
    return caller;
  }

  get messages(): SentMessage[] {
    return this.lines.flatMap((line) => ("server" in line ? [line.server] : []));
  }

  /** Milliseconds since the room was joined. */
  nowMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  /** Milliseconds of audible sound heard since `fromMs`. */
  audibleMs(fromMs = 0, untilMs = Number.POSITIVE_INFINITY): number {
    const frames = this.heard.filter(({ atMs, rms }) => atMs >= fromMs && atMs < untilMs && rms > audibleAbove);
    return frames.length * frameMs;
  }

  /** Resolves when `found` finds something. @throws Error saying `what` was expected */
  async until<T>(what: string, found: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
    const giveUpAtMs = performance.now() + patienceMs;
    for (;;) {
      const value = await found();
      if (value !== undefined && value !== false) return value;
      if (performance.now() > giveUpAtMs) {
        throw new Error(`Expected ${what}; heard ${this.messages.map(({ type }) => type).join(" ")}`);
      }
      // Sound wakes nobody: a beat of the caller's own does.
      await Promise.race([
        new Promise<void>((resolve) => this.#waiters.add(resolve)),
        new Promise<void>((resolve) => setTimeout(resolve, frameMs)),
      ]);
    }
  }

  message<K extends ServerMessageType>(type: K, times = 1): Promise<Extract<SentMessage, { type: K }>> {
    return this.until(`${times} ${type}`, () => {
      const all = this.messages.filter((one): one is Extract<SentMessage, { type: K }> => one.type === type);
      return all[times - 1];
    });
  }

  async speak(ms: number, voice: (sample: number) => number = voiceSample): Promise<void> {
    this.#voice = voice;
    await this.wait(ms);
    this.#voice = undefined;
  }

  /** The samples of a recording, at 16 kHz, as they are. */
  async play(samples: Int16Array): Promise<void> {
    const first = this.#framesSent * frameSamples;
    await this.speak((samples.length / rateHz) * 1000, (at) => samples[at - first] ?? 0);
  }

  async wait(ms: number): Promise<void> {
    const frames = this.#framesSent + ms / frameMs;
    // A late caller catches up with frames, and never with time: the agent's speech takes what it takes.
    const untilMs = this.nowMs() + ms;
    while ((this.#framesSent < frames || this.nowMs() < untilMs) && !this.#isGone) await this.#nextFrame();
  }

  async waitFor(type: ServerMessageType, times: number): Promise<void> {
    const count = () => this.messages.filter((message) => message.type === type).length;
    const giveUpAtMs = performance.now() + patienceMs;
    while (count() < times && !this.#isGone) {
      if (performance.now() > giveUpAtMs) throw new Error(`Expected ${times} ${type}, got ${count()}`);
      await this.#nextFrame();
    }
  }

  async send(message: ClientMessage): Promise<void> {
    const bytes = new TextEncoder().encode(JSON.stringify(message));
    await this.room.localParticipant?.publishData(bytes, { reliable: true, topic: "voice.v1" });
  }

  async leave(): Promise<void> {
    this.#isGone = true;
    for (const reader of this.#hearing) await reader.cancel().catch(() => undefined);
    await this.room.disconnect();
    await this.#source.close();
  }

  #listen(): void {
    const wake = () => {
      for (const resolve of this.#waiters) resolve();
      this.#waiters.clear();
    };
    this.room.on(RoomEvent.DataReceived, (payload, _participant, _kind, topic) => {
      if (topic !== "voice.v1") return;
      const server = JSON.parse(new TextDecoder().decode(payload)) as SentMessage;
      this.lines.push({ at_ms: Math.round(this.nowMs()), server });
      wake();
    });
    this.room.on(RoomEvent.TrackSubscribed, (track) => {
      if (track.kind === TrackKind.KIND_AUDIO) void this.#hear(new AudioStream(track, rateHz, 1));
    });
    this.room.on(RoomEvent.ParticipantAttributesChanged, (changed) => {
      const state = changed["lk.agent.state"];
      if (state !== undefined) this.agentStates.push(state);
      wake();
    });
    this.room.on(RoomEvent.Disconnected, () => {
      this.isDisconnected = true;
      wake();
    });
    this.room.registerTextStreamHandler("lk.transcription", (reader, { identity }) => {
      const read = (text: string) => {
        const { topic, attributes = {} } = reader.info;
        this.streams.push({ topic, text, from: identity, attributes });
        wake();
      };
      // A stream that the end of the visit cuts off is no stream.
      reader.readAll().then(read, () => undefined);
    });
  }

  async #hear(stream: AudioStream): Promise<void> {
    const reader = stream.getReader();
    this.#hearing.push(reader);
    for (;;) {
      const { done, value } = await reader.read();
      if (done || !value) return;
      const samples = value.data;
      for (let at = 0; at < samples.length; at += frameSamples) {
        const frame = samples.slice(at, at + frameSamples);
        const rms = Math.sqrt(frame.reduce((sum, sample) => sum + sample * sample, 0) / frame.length);
        // Frames of 10 ms count for half: two make one.
        const last = this.heard.at(-1);
        if (last && last.samples.length < frameSamples) {
          last.rms = Math.max(last.rms, rms);
          last.samples = Int16Array.from([...last.samples, ...frame]);
        } else this.heard.push({ atMs: this.nowMs(), rms, samples: frame });
      }
    }
  }

  async #publish(): Promise<void> {
    const options = new TrackPublishOptions();
    options.source = TrackSource.SOURCE_MICROPHONE;
    const track = LocalAudioTrack.createAudioTrack("microphone", this.#source);
    await this.room.localParticipant?.publishTrack(track, options);
    this.#unpublished = false;
    this.#startedAtMs = performance.now();
  }

  async #nextFrame(): Promise<void> {
    const dueMs = (this.#framesSent + 1) * frameMs;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - this.nowMs())));
    const frame = AudioFrame.create(rateHz, 1, frameSamples);
    const first = this.#framesSent * frameSamples;
    if (this.#voice) for (let i = 0; i < frameSamples; i += 1) frame.data[i] = this.#voice(first + i);
    this.#framesSent += 1;
    if (!this.#unpublished && !this.#isGone) void this.#source.captureFrame(frame).catch(() => undefined);
  }
}
