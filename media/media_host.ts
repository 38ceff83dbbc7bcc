/**
 * The seam between a transport and the session that talks. A transport (a WebSocket call, a
 * LiveKit room) hands in audio bytes and client messages and gets audio bytes, messages and record
 * updates back, in the order in which they are meant to leave. The session knows neither sockets
 * nor storage. `worker_pool.ts` offers the same interface across threads.
 *
 * Clock: `nowMs()` everywhere, milliseconds since the epoch with sub-millisecond parts, equal in
 * all threads of a process (`performance.timeOrigin + performance.now()`).
 */

import type { AudioFormat } from "#contracts/audio_format.ts";
import type { CallEnd, CallFailure, CallProgress } from "#contracts/call_record.ts";
import type { Credentials } from "#contracts/internal_calls.ts";
import type { PriceTable } from "#contracts/usage.ts";
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ClientMessage, EndReason, ServerMessage, ServerMessageType, Usage } from "#contracts/voice_protocol.ts";

/** Milliseconds since the epoch, monotonic, the same in every thread of the process. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Everything a session needs to begin. Structured-cloneable: it crosses into a thread. */
export interface SessionSpec {
  callId: string;
  config: CallConfig;
  /** The connections that `config` names, opened. They live in the session until it ends, and nowhere else. */
  credentials?: Credentials;
  /** Of what the call may use. */
  prices?: PriceTable;
  inputFormat: AudioFormat;
  outputFormat: AudioFormat;
  /** How far ahead of real time speech is sent. */
  clientBufferMs: number;
  initialMessages: readonly { role: "user" | "agent"; text: string }[];
}

/** Messages that only the transport can write: it owns the link, its keepalive and the call's end. */
export type TransportMessageType = "call_started" | "pong" | "draining" | "call_ended";
export type SessionMessage = Exclude<ServerMessage, { type: TransportMessageType }>;
export type SessionMessageType = Exclude<ServerMessageType, TransportMessageType>;

/** Client messages that reach the session; the transport answers `ping` and unpacks `media` itself. */
export type SessionCommand = Exclude<ClientMessage, { type: "ping" | "media" }> | LeaveCommand;

/** Our own: the agent says goodbye, then the call ends. */
export interface LeaveCommand {
  type: "leave";
  reason: "usage_limit";
}

/** What a session sends, in order. Implementations must not throw. */
export interface SessionSink {
  /** One encoded output frame (one Opus packet for opus). The bytes are the sink's to keep. */
  audio(frame: Uint8Array, durationMs: number): void;
  /** Audio that waits is dropped: it comes again, after a lost link. */
  dropUnsent(): void;
  message(message: SessionMessage): void;
  /** Growth of the call's record since the last call of this. */
  record(progress: Omit<CallProgress, "call_id">): void;
  /** Once, last: nothing follows. */
  ended(end: CallEnd, usage: Usage): void;
}

export interface MediaSession {
  /** Input audio as it came: any length, an odd tail is carried over. `arrivedAtMs` from `nowMs()`. */
  audio(bytes: Uint8Array, arrivedAtMs: number): void;
  command(command: SessionCommand): void;
  /**
   * How much audio waits unsent in the transport, in milliseconds. Above 1 s the session stops
   * pulling speech; the transport reports again when it falls.
   */
  reportUnsent(unsentMs: number): void;
  /**
   * The client has taken so much of the audio of this session, in milliseconds of `sink.audio` from the call's
   * beginning. Never reported: what was heard is known from marks, or from the clock.
   */
  reportDelivered(audioMs: number): void;
  /** The link is lost: speech pauses where it is, no silence is filled in, idle time stands still. */
  pause(): void;
  /** The link is back. */
  resume(): void;
  /** Ends the call: speech stops, the record is completed and `sink.ended` follows. Idempotent. */
  end(reason: EndReason, errorCode?: CallFailure): void;
}

/** Opens sessions: `worker_pool.ts` spreads them over threads. */
export interface MediaHost {
  /** @throws MediaFullError when no thread can take another session of this format (Opus instances are bounded) */
  open(spec: SessionSpec, sink: SessionSink): MediaSession;
  /** Ends what is open and stops the threads. */
  close(): Promise<void>;
}

/** No room for another session; the transport refuses with `capacity`. */
export class MediaFullError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MediaFullError";
  }
}
