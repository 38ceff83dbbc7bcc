/**
 * One call: a media session, and the link to its client, which may be lost and come back.
 *
 *     live ──lost link──► lost ──resume──► live      (30 s, the slot is held)
 *       │                  │
 *       └──── end(…) ──────┴─► ending ──session ended──► ended
 *
 * A call is told the time by `tick` (audio path) and `tock` (once a second); it owns no timer.
 */

import { frameMsFor } from "#contracts/audio_format.ts";
import type { CallEnd, CallFailure, CallProgress } from "#contracts/call_record.ts";
import type { CallWarningCode } from "#contracts/codes.ts";
import type { OpenedCall } from "#contracts/internal_calls.ts";
import {
  type ClientMessage,
  type CloseReason,
  closeCodes,
  type EndReason,
  emptyUsage,
  type Usage,
  voiceLimits,
  voiceProtocol,
} from "#contracts/voice_protocol.ts";
import type { MediaHost, MediaSession, SessionMessage, SessionSink } from "#media/media_host.ts";
import type { SocketEnd, SocketEvents, TransportSocket } from "../transport/transport.ts";
import { CallInput, type InputListener } from "./call_input.ts";
import { CallOutbound } from "./call_outbound.ts";
import type { Slot } from "./call_slots.ts";
import { resumeUrlFor } from "./call_url.ts";
import type { PacingEvent } from "./input_pacing.ts";
import { LinkKeepalive } from "./link_keepalive.ts";
import { ResumeToken, type TokenResult } from "./resume_token.ts";

export interface CallDeps {
  nowMs(): number;
  newToken(): string;
  media: MediaHost;
  /** `http(s)://` address of this very process. */
  gatewayPublicUrl: string;
  /** Of each answered turn: what the gateway added to it, in milliseconds. */
  onTurn?(gatewayMs: number): void;
  /** A client has stopped to read. */
  onStalled?(): void;
  /** Growth of the record; and, once, its end. */
  onProgress(callId: string, progress: Omit<CallProgress, "call_id">): void;
  onEnded(call: Call, end: CallEnd): void;
}

/** A new socket of a call: what it reports to, and itself once it is there. */
export interface CallLink {
  readonly events: SocketEvents;
  socket?: TransportSocket | undefined;
  /** It ended before the call knew it. */
  isDead: boolean;
}

/** How long a session may take to end before the call ends without it. */
const endingMsMax = 5000;
/** Above the session's bound: it sends no more. */
const stalledUnsentMs = 2000;
/** Warnings and errors that the record keeps; a client has heard of the later ones all the same. */
const recordedEventsMax = 200;

const closeReasonFor: Readonly<Record<EndReason, CloseReason>> = {
  client_hangup: "normal",
  agent_hangup: "normal",
  transferred: "normal",
  max_duration: "max_duration",
  idle_timeout: "idle_timeout",
  usage_limit: "normal",
  error: "internal",
  drained: "drained",
  superseded: "superseded",
};

export class Call {
  readonly callId: string;
  readonly #opened: OpenedCall;
  readonly #deps: CallDeps;
  readonly #slot: Slot;
  readonly #session: MediaSession;
  readonly #outbound: CallOutbound;
  readonly #input: CallInput;
  readonly #keepalive = new LinkKeepalive();
  readonly resumeToken: ResumeToken;
  readonly #startedAtMs: number;
  #state: "live" | "lost" | "ending" | "ended" = "live";
  #socket: TransportSocket | undefined;
  #lostAtMs = 0;
  #endingSinceMs: number | undefined;
  #closeReason: CloseReason | undefined;
  #reportedUnsentMs = 0;
  #isStalled = false;
  #isDraining = false;
  #usage: Usage = emptyUsage();
  #events = 0;

  /** Opens the session; nothing is sent before `start`. @throws MediaFullError */
  constructor(opened: OpenedCall, slot: Slot, deps: CallDeps) {
    this.callId = opened.call_id;
    this.#opened = opened;
    this.#deps = deps;
    this.#slot = slot;
    this.#startedAtMs = deps.nowMs();
    this.#outbound = new CallOutbound(opened.output_format);
    this.resumeToken = new ResumeToken(deps.newToken);
    this.#session = deps.media.open(
      {
        callId: opened.call_id,
        config: opened.config,
        ...(opened.credentials && { credentials: opened.credentials }),
        ...(opened.prices && { prices: opened.prices }),
        inputFormat: opened.input_format,
        outputFormat: opened.output_format,
        clientBufferMs: opened.client_buffer_ms,
        initialMessages: opened.initial_messages,
      },
      this.#sink(),
    );
    this.#input = new CallInput({
      nowMs: this.#startedAtMs,
      format: opened.input_format,
      session: this.#session,
      listener: this.#inputListener(),
    });
  }

  /** Number of the newest message that was sent, or would have been while the link is lost. */
  get seq(): number {
    return this.#outbound.seq;
  }

  get isOver(): boolean {
    return this.#state === "ending" || this.#state === "ended";
  }

  /** Since when its client is missing and may still come back. */
  get lostSinceMs(): number | undefined {
    return this.#state === "lost" ? this.#lostAtMs : undefined;
  }

  /** Its client has not come back: another needs the slot, which is free at once. */
  giveUpLink(): void {
    if (this.#state !== "lost") return;
    this.#slot.release();
    this.end("error", { errorCode: "link_lost" });
  }

  /** Whether `tick` has work to do. */
  get needsTicks(): boolean {
    return this.#outbound.isBacklogged || this.#input.isWaiting || this.#reportedUnsentMs > 0;
  }

  /** What a new socket of this call reports to. To be followed by `start` or `resumeOn` with the same link. */
  newLink(): CallLink {
    const isCurrent = () => link.socket !== undefined && link.socket === this.#socket;
    const events: SocketEvents = {
      onText: (text) => {
        if (isCurrent() && !this.isOver) this.#input.text(this.#deps.nowMs(), text);
      },
      onBinary: (bytes) => {
        if (isCurrent() && !this.isOver) this.#input.binary(this.#deps.nowMs(), bytes);
      },
      onOversized: () => {
        if (isCurrent()) this.#fail("too_big");
      },
      onFrame: () => {
        if (isCurrent()) this.#keepalive.frame(this.#deps.nowMs());
      },
      onPong: (payload) => {
        if (isCurrent() && this.#outbound.pong(this.#deps.nowMs(), payload)) this.#reportDelivered();
      },
      onDrain: () => {
        if (isCurrent()) this.tick(this.#deps.nowMs());
      },
      onEnd: (end) => {
        link.isDead = true;
        if (isCurrent()) this.#linkEnded(end);
      },
    };
    const link: CallLink = { events, isDead: false };
    return link;
  }

  /**
   * The first socket is there: `call_started`, then what the session has said meanwhile. A client that is
   * gone by now has no token to come back with: that call is over.
   */
  start(link: CallLink): void {
    const { socket } = link;
    if (!socket || link.isDead) {
      this.#hangUp();
      return;
    }
    const nowMs = this.#deps.nowMs();
    if (this.#state === "ended") {
      socket.close(closeCodes.internal.code, "internal");
      return;
    }
    this.#outbound.start(nowMs);
    this.#connect(socket, nowMs);
    socket.batch(() => {
      this.#sendStarted(nowMs);
      this.#outbound.beginDelivery(nowMs);
      this.#outbound.flush(nowMs);
    });
  }

  /** What `token` is worth; `taken` uses it up. */
  takeResumeToken(token: string): TokenResult {
    return this.isOver || this.#isDraining ? this.resumeToken.peek(token) : this.resumeToken.take(token);
  }

  /** For a client that went away before it could come back: it may try again with the same token. */
  giveBackResumeToken(token: string): void {
    this.resumeToken.giveBack(token);
  }

  /** A client is back: replay, a `call_started` with the next token, then the talk goes on. */
  resumeOn({ socket, isDead }: CallLink, lastSeq: number): void {
    if (!socket || isDead) return;
    if (this.#state === "ended") {
      socket.close(closeCodes.internal.code, "internal");
      return;
    }
    const nowMs = this.#deps.nowMs();
    const wasLost = this.#state === "lost";
    const old = this.#socket;
    this.#socket = undefined;
    old?.close(closeCodes.superseded.code, "superseded");
    if (wasLost) this.#state = "live";
    this.#connect(socket, nowMs);
    socket.batch(() => {
      const missed = this.#outbound.replay(lastSeq);
      this.#sendStarted(nowMs);
      if (missed > 0) this.#warn("events_lost", `${missed} messages are no longer held for replay`);
      this.#outbound.beginDelivery(nowMs);
      this.#outbound.flush(nowMs);
    });
    if (wasLost) this.#session.resume();
  }

  /** A client message that came over the api, already checked against its schema there. */
  control(message: ClientMessage): void {
    if (!this.isOver) this.#input.text(this.#deps.nowMs(), JSON.stringify(message));
  }

  /** The process goes away at `deadline`. */
  drain(deadline: Date): void {
    if (this.isOver) return;
    this.#isDraining = true;
    if (this.#state === "lost") {
      this.end("error", { errorCode: "link_lost" });
      return;
    }
    this.#outbound.sendNow(this.#deps.nowMs(), { type: "draining", deadline: deadline.toISOString(), resume: false });
  }

  /** Ends the call; its last message and the record follow when the session has ended. Idempotent. */
  end(reason: EndReason, options: { close?: CloseReason; errorCode?: CallFailure } = {}): void {
    if (this.isOver) return;
    this.#state = "ending";
    this.#endingSinceMs = this.#deps.nowMs();
    this.#closeReason = options.close;
    if (options.errorCode === undefined) this.#session.end(reason);
    else this.#session.end(reason, options.errorCode);
  }

  /** Has the agent say goodbye, then ends the call. */
  leave(reason: "usage_limit"): void {
    if (!this.isOver) this.#session.command({ type: "leave", reason });
  }

  /** Every few milliseconds while `needsTicks`. */
  tick(nowMs: number): void {
    if (this.#state === "ended") return;
    if (this.#input.isWaiting) this.#input.drain(nowMs);
    this.#outbound.flush(nowMs);
    const unsentMs = this.#unsentMs(nowMs);
    if (unsentMs !== this.#reportedUnsentMs) {
      this.#reportedUnsentMs = unsentMs;
      this.#session.reportUnsent(unsentMs);
    }
    if (this.isOver) return;
    const isSlow = this.#state === "live" && this.#outbound.isTooSlow(nowMs, this.#keepalive.frameAtMs);
    if (isSlow || this.#outbound.isOverfull) this.#fail("slow_consumer");
  }

  /** What a client that has stopped reading was sent is as good as unsent. */
  #unsentMs(nowMs: number): number {
    const unsentMs = Math.round(this.#outbound.unsentMs());
    const isStalled = this.#outbound.isStalled(nowMs);
    if (isStalled && !this.#isStalled) this.#stalls();
    this.#isStalled = isStalled;
    return isStalled ? Math.max(unsentMs, stalledUnsentMs) : unsentMs;
  }

  #stalls(): void {
    this.#deps.onStalled?.();
    this.#warn("client_not_reading", "The client takes nothing of what is sent: the agent's speech waits for it");
  }

  #reportDelivered(): void {
    const { deliveredMs } = this.#outbound;
    if (deliveredMs !== undefined && !this.isOver) this.#session.reportDelivered(deliveredMs);
  }

  /** Once a second. */
  tock(nowMs: number): void {
    if (this.#endingSinceMs !== undefined && nowMs - this.#endingSinceMs > endingMsMax) {
      this.#finish(
        { reason: "error", duration_ms: nowMs - this.#startedAtMs, error_code: "session_stuck" },
        this.#usage,
      );
      return;
    }
    if (this.#state === "lost" && nowMs - this.#lostAtMs >= voiceLimits.resumeWindowS * 1000) {
      this.end("error", { errorCode: "link_lost" });
      return;
    }
    if (this.#state !== "live" || !this.#socket) return;
    this.tick(nowMs);
    const due = this.#keepalive.due(nowMs);
    if (due === "ping") this.#socket.ping();
    if (due === "dead") this.#linkLost();
  }

  #connect(socket: TransportSocket, nowMs: number): void {
    this.#socket = socket;
    this.#keepalive.start(nowMs);
    this.#outbound.attach(socket);
  }

  #sendStarted(nowMs: number): void {
    const opened = this.#opened;
    const token = this.resumeToken.next();
    const { max_call_duration_s, idle_timeout_s } = opened.config.advanced;
    this.#outbound.sendNow(nowMs, {
      type: "call_started",
      call_id: opened.call_id,
      ...(opened.agent_id !== undefined && { agent_id: opened.agent_id }),
      protocol: voiceProtocol,
      input: opened.input_format,
      output: { ...opened.output_format, frame_ms: frameMsFor(opened.output_format) },
      limits: { max_call_duration_s, idle_timeout_s, max_message_bytes: voiceLimits.messageBytesMax },
      keepalive: { ping_interval_s: voiceLimits.pingIntervalS },
      resume: {
        url: resumeUrlFor(this.#deps.gatewayPublicUrl, opened.call_id, token),
        token,
        window_s: voiceLimits.resumeWindowS,
      },
    });
  }

  #linkEnded(end: SocketEnd): void {
    if (end.kind === "lost") {
      this.#linkLost();
      return;
    }
    this.#disconnect();
    if (end.kind === "violation") {
      // Nobody can come back to a socket that the transport has closed itself: the slot is free at once.
      this.#slot.release();
      this.end("error", { errorCode: end.violation });
      return;
    }
    // A close frame is a hang-up, whatever its code.
    this.#hangUp();
  }

  /** The client wants no more: the slot is free at once. */
  #hangUp(): void {
    this.#slot.release();
    this.end("client_hangup");
  }

  #linkLost(): void {
    this.#disconnect()?.terminate();
    if (this.isOver) return;
    if (this.#isDraining) {
      this.end("error", { errorCode: "link_lost" });
      return;
    }
    this.#state = "lost";
    this.#lostAtMs = this.#deps.nowMs();
    this.#session.pause();
  }

  #disconnect(): TransportSocket | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#outbound.attach(undefined);
    return socket;
  }

  /** The client, or its link, makes going on impossible. */
  #fail(close: CloseReason): void {
    this.end("error", { close, errorCode: close });
  }

  #warn(code: CallWarningCode, message: string): void {
    const warning = { type: "warning", code, message, fatal: false } as const;
    this.#note(warning);
    this.#outbound.sendNow(this.#deps.nowMs(), warning);
  }

  /** What went wrong is in the record too. */
  #note(message: SessionMessage): void {
    if (message.type !== "warning" && message.type !== "error") return;
    if (this.#state === "ended" || this.#events >= recordedEventsMax) return;
    this.#events += 1;
    const { type, ...data } = message;
    const at_ms = Math.max(0, Math.round(this.#deps.nowMs() - this.#startedAtMs));
    const event = { event_id: `event_${this.#events}`, at_ms, type, data };
    this.#deps.onProgress(this.callId, { items: [], turns: [], events: [event] });
  }

  #inputListener(): InputListener {
    return {
      badMessage: (message, ref) => {
        const error = { type: "error", code: "bad_message", message, fatal: false, ...(ref && { ref }) } as const;
        this.#note(error);
        this.#outbound.sendNow(this.#deps.nowMs(), error);
      },
      abused: () => this.#fail("policy"),
      audioInTextOnlyCall: () => this.#fail("unsupported_data"),
      ping: (timestamp) => {
        const pong = { type: "pong", server_time: new Date(this.#deps.nowMs()).toISOString() } as const;
        this.#outbound.sendNow(this.#deps.nowMs(), timestamp === undefined ? pong : { ...pong, timestamp });
      },
      hangUp: (message) => {
        if (!message.message) this.#hangUp();
      },
      pacing: (event, bufferedMs) => this.#paced(event, bufferedMs),
    };
  }

  #paced(event: PacingEvent, bufferedMs: number): void {
    const nowMs = this.#deps.nowMs();
    if (event === "flood") this.#fail("input_flood");
    else if (event === "overrun")
      this.#warn("input_overrun", "Audio comes faster than it is heard: the oldest is dropped");
    else this.#outbound.sendNow(nowMs, { type: "flow", state: event, buffered_ms: bufferedMs });
  }

  #sink(): SessionSink {
    return {
      audio: (frame, durationMs) => {
        if (this.#state !== "ended") this.#outbound.audio(this.#deps.nowMs(), frame, durationMs);
      },
      dropUnsent: () => this.#outbound.dropAudio(),
      message: (message: SessionMessage) => {
        if (message.type === "turn_metrics") this.#deps.onTurn?.(message.gateway_ms);
        this.#note(message);
        if (this.#state !== "ended") this.#outbound.message(this.#deps.nowMs(), message);
      },
      record: (progress) => {
        if (progress.usage) this.#usage = progress.usage;
        if (this.#state !== "ended") this.#deps.onProgress(this.callId, progress);
      },
      ended: (end, usage) => this.#finish(end, usage),
    };
  }

  #finish(end: CallEnd, usage: Usage): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    const nowMs = this.#deps.nowMs();
    const close = this.#closeReason ?? closeReasonFor[end.reason];
    const socket = this.#socket;
    if (socket) {
      socket.batch(() => {
        this.#outbound.finish(nowMs, { withAudio: this.#closeReason === undefined });
        if (close !== "slow_consumer") {
          this.#outbound.sendNow(nowMs, {
            type: "call_ended",
            reason: end.reason,
            duration_ms: Math.round(end.duration_ms),
            usage,
          });
        }
      });
      this.#disconnect();
      socket.close(closeCodes[close].code, close);
    }
    this.#slot.release();
    this.#deps.onEnded(this, end);
  }
}
