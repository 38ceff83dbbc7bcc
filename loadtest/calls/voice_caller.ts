/**
 * One caller: a WebSocket, a microphone that never pauses, and a loudspeaker that is simulated. It
 * keeps no timer: the scheduler of all callers tells it when a frame is due. What it measures goes
 * into the figures that all callers share.
 */
import type { IncomingMessage } from "node:http";
import { type RawData, WebSocket } from "ws";
import { type SentMessage, voiceProtocol } from "#contracts/voice_protocol.ts";
import { type CallerSpeech, callerFrameMs, fromSentenceMs } from "../kit/caller_speech.ts";
import type { CallFigures } from "./call_figures.ts";

/** How long ago a frame may have been sent and still be looked up: 41 s of frames, a power of two. */
const sentFramesKept = 2048;

/** What all callers of a run share. */
export interface CallersShared {
  readonly speech: CallerSpeech;
  /** Where measurements go now: the run exchanges it when everybody is connected. */
  figures: CallFigures;
  readonly clientBufferMs: number;
  /** The agent's pinned end-of-speech wait. */
  readonly eosSilenceMs: number;
  readonly minInterruptMs: number;
  /** What the agent's scripted providers take on purpose. */
  readonly providerDelayMs: number;
}

/** Speech that is reported further than this from a sentence's beginning: offsets no longer are the caller's own. */
const offsetMsMax = 150;

type State = "dialling" | "talking" | "hanging up" | "closed";

export class VoiceCaller {
  readonly #shared: CallersShared;
  readonly #url: string;
  readonly #firstFrame: number;
  readonly #sentAtMs = new Float64Array(sentFramesKept);
  /** Marks to answer when the loudspeaker gets there: name and time, in order. */
  readonly #marks: { name: string; dueMs: number }[] = [];
  #socket: WebSocket | undefined;
  #state: State = "dialling";
  #framesSent = 0;
  #lastSeq = 0;
  #frameMs = 20;
  #speechStoppedMs = 0;
  /** The next audio is the first of an answer to speech. */
  #awaitsAnswer = false;
  #awaitsUtterance = true;
  /** The gateway has filled a gap with silence, so its offsets in the input audio are not ours any more. */
  #isShifted = false;
  #clearedAtMs: number | undefined;
  #playsFromMs = 0;
  #receivedMs = 0;
  #lastFrameAtMs = 0;
  #endReason = "";

  /** @param firstFrame the frame of the loop to begin with */
  constructor(url: string, firstFrame: number, shared: CallersShared) {
    this.#url = url;
    this.#firstFrame = firstFrame;
    this.#shared = shared;
  }

  get isTalking(): boolean {
    return this.#state === "talking";
  }

  /**
   * Dials. Resolves with `admitted` at `call_started`, or with the code of the refusal; never rejects.
   */
  connect(): Promise<"admitted" | string> {
    const { figures } = this.#shared;
    const dialledAtMs = performance.now();
    return new Promise((resolve) => {
      const socket = new WebSocket(this.#url, voiceProtocol, { perMessageDeflate: false, generateMask: maskWithZeros });
      this.#socket = socket;
      socket.on("message", (data, isBinary) => {
        const nowMs = performance.now();
        if (isBinary) {
          this.#hear(data, nowMs);
          return;
        }
        const message = JSON.parse(data.toString()) as SentMessage;
        if (message.type === "call_started" && this.#state === "dialling") {
          this.#state = "talking";
          this.#frameMs = message.output.frame_ms;
          figures.admitted += 1;
          figures.connectMs.record(nowMs - dialledAtMs);
          resolve("admitted");
        }
        this.#take(message, nowMs);
      });
      socket.on("unexpected-response", (_request, response) => {
        void refusalCodeOf(response).then((code) => {
          this.#refused(code, resolve);
          socket.terminate();
        });
      });
      socket.on("error", () => {
        // what went wrong shows in `close` or `unexpected-response`
      });
      socket.on("close", (code) => {
        if (this.#state === "dialling") this.#refused("no_answer", resolve);
        if (this.#state === "talking") this.#shared.figures.dropped.add(`${code} ${this.#endReason || "lost"}`);
        this.#state = "closed";
      });
    });
  }

  /** Sends the frame that is due now and answers marks that were played meanwhile. */
  sendFrame(nowMs: number): void {
    const socket = this.#socket;
    if (this.#state !== "talking" || !socket) return;
    const { speech, figures } = this.#shared;
    const frame = speech.frames[(this.#firstFrame + this.#framesSent) % speech.frames.length];
    if (frame) socket.send(frame);
    this.#sentAtMs[this.#framesSent % sentFramesKept] = nowMs;
    this.#framesSent += 1;
    figures.framesSent += 1;
    for (let mark = this.#marks[0]; mark && mark.dueMs <= nowMs; mark = this.#marks[0]) {
      this.#marks.shift();
      socket.send(JSON.stringify({ type: "mark", name: mark.name }));
    }
  }

  /** Hangs up; resolves when the socket has closed, or after `withinMs` in any case. */
  async hangUp(withinMs: number): Promise<void> {
    const socket = this.#socket;
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        socket.terminate();
        resolve();
      }, withinMs);
      socket.once("close", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (this.#state === "talking") {
      this.#state = "hanging up";
      socket.send('{"type":"hang_up"}');
    }
    await closed;
    if (this.#endReason === "") this.#shared.figures.dropped.add("no call_ended");
  }

  #refused(code: string, resolve: (code: string) => void): void {
    if (this.#state !== "dialling") return;
    this.#state = "closed";
    this.#shared.figures.refused.add(code);
    resolve(code);
  }

  #take(message: SentMessage, nowMs: number): void {
    const { figures, minInterruptMs } = this.#shared;
    if (message.seq !== this.#lastSeq + 1) figures.sequenceGaps += 1;
    this.#lastSeq = message.seq;
    switch (message.type) {
      case "user_speech_started":
        // A call may begin within a sentence: then the first speech does not begin where a sentence does.
        this.#isShifted =
          message.audio_ms > offsetMsMax &&
          fromSentenceMs(this.#shared.speech, this.#firstFrame * callerFrameMs + message.audio_ms) > offsetMsMax;
        if (this.#clearedAtMs !== undefined) {
          const sentAtMs = this.#sentAt(message.audio_ms + minInterruptMs);
          if (sentAtMs === undefined) figures.unmeasured += 1;
          else figures.bargeInMs.record(this.#clearedAtMs - sentAtMs);
        }
        this.#clearedAtMs = undefined;
        return;
      case "user_speech_stopped":
        this.#speechStoppedMs = message.audio_ms;
        this.#awaitsAnswer = true;
        return;
      case "agent_speech_started":
        this.#awaitsUtterance = false;
        this.#receivedMs = 0;
        return;
      case "clear":
        this.#clearedAtMs = message.reason === "user_speech" ? nowMs : undefined;
        this.#awaitsUtterance = true;
        this.#dropMarks();
        return;
      case "mark":
        this.#marks.push({ name: message.name, dueMs: this.#playsFromMs + this.#receivedMs });
        return;
      case "turn_metrics":
        figures.recordTurn(message);
        return;
      case "warning":
      case "error":
        figures.warnings.add(message.code);
        return;
      case "call_ended":
        this.#endReason = message.reason;
        return;
    }
  }

  /** One output frame: latency of an answer's first one, jitter and underruns of the others. */
  #hear(_data: RawData, nowMs: number): void {
    const { figures, clientBufferMs } = this.#shared;
    figures.framesReceived += 1;
    figures.outputAudioMs += this.#frameMs;
    if (this.#awaitsUtterance) figures.framesAfterClear += 1;
    if (this.#awaitsAnswer) this.#measureAnswer(nowMs);
    const neededAtMs = this.#playsFromMs + this.#receivedMs;
    if (this.#receivedMs === 0) {
      this.#playsFromMs = nowMs;
    } else if (nowMs > neededAtMs) {
      figures.underruns += 1;
      this.#playsFromMs += nowMs - neededAtMs; // the loudspeaker stood still
    }
    if (this.#receivedMs > clientBufferMs) {
      figures.jitterMs.record(Math.abs(nowMs - this.#lastFrameAtMs - this.#frameMs));
    }
    this.#receivedMs += this.#frameMs;
    this.#lastFrameAtMs = nowMs;
  }

  #measureAnswer(nowMs: number): void {
    const { figures, eosSilenceMs, providerDelayMs } = this.#shared;
    this.#awaitsAnswer = false;
    const sentAtMs = this.#sentAt(this.#speechStoppedMs + eosSilenceMs);
    if (sentAtMs === undefined) figures.unmeasured += 1;
    else figures.answerMs.record(nowMs - sentAtMs - providerDelayMs);
  }

  /** When the frame was sent that brought the input audio to `audioMs`; undefined when that is unknown. */
  #sentAt(audioMs: number): number | undefined {
    const frame = Math.ceil(audioMs / callerFrameMs) - 1;
    if (this.#isShifted || frame < 0 || frame >= this.#framesSent || frame < this.#framesSent - sentFramesKept)
      return undefined;
    return this.#sentAtMs[frame % sentFramesKept];
  }

  #dropMarks(): void {
    for (const { name } of this.#marks.splice(0)) {
      this.#socket?.send(JSON.stringify({ type: "mark", name, cleared: true }));
    }
  }
}

/** RFC 6455 wants a mask; one of zeros is a mask that costs nothing, and `ws` then skips the pass over the bytes. */
function maskWithZeros(mask: Buffer): void {
  mask.fill(0);
}

/** The `code` of a refused upgrade's body, or its status where there is none. */
async function refusalCodeOf(response: IncomingMessage): Promise<string> {
  try {
    let body = "";
    for await (const chunk of response) body += String(chunk);
    const { code } = JSON.parse(body) as { code?: unknown };
    if (typeof code === "string") return code;
  } catch {
    // no JSON: the status says enough
  }
  return `http_${response.statusCode ?? 0}`;
}
