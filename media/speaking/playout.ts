/**
 * Paces one utterance at a time onto the wire: the first frame at once, a burst that fills the
 * client's buffer (the lead), then real time. Keeps what was sent until it was probably heard, so
 * that a barge-in can be taken back from the very sample where it cut.
 *
 * How much was heard: the newest mark that the client echoed anchors the estimate, which then runs
 * with the clock; without marks it is the time since the first frame less the client's start-up
 * delay. Never more than was sent.
 */

/** Speech that waits here above this stops the pull from text to speech. */
export const queuedMsMax = 2000;
/** Unsent audio in the transport above this stops the pacing. */
export const unsentMsMax = 1000;
/** A client starts to play before its buffer is full, at the latest after this. */
const startDelayMsMax = 400;

export interface PlayoutOptions {
  sampleRateHz: number;
  frameMs: number;
  /** How far ahead of real time audio is sent: `client_buffer_ms`. */
  leadMs: number;
}

export interface PlayoutSink {
  /** `samples` is at most one frame; the last of an utterance may be shorter. The view is valid during the call. */
  frame(samples: Int16Array): void;
  /** A mark to be sent after the audio so far. */
  mark(name: string): void;
}

export interface Cut {
  utteranceId: string;
  playedMs: number;
  sentMs: number;
  /** The samples from the cut point on. */
  rest: Int16Array[];
  /** No more samples would have come. */
  finished: boolean;
}

interface Utterance {
  id: string;
  /** Chunks from sample `keptFrom` on. */
  chunks: Int16Array[];
  keptFrom: number;
  pushed: number;
  sent: number;
  finished: boolean;
  endMarked: boolean;
  /** When sample 0 would have been played by a client without a buffer. */
  startMs: number | undefined;
  /** The newest echoed mark. */
  anchor: { playedMs: number; atMs: number } | undefined;
  markPositionsMs: Map<string, number>;
}

export class Playout {
  readonly #options: PlayoutOptions;
  readonly #sink: PlayoutSink;
  readonly #frame: Int16Array;
  #leadMs: number;
  #utterance: Utterance | undefined;
  #paused = false;
  #throttled = false;

  constructor(options: PlayoutOptions, sink: PlayoutSink) {
    this.#options = options;
    this.#sink = sink;
    this.#leadMs = options.leadMs;
    this.#frame = new Int16Array((options.sampleRateHz * options.frameMs) / 1000);
  }

  /** The utterance that is being sent or played. */
  get utteranceId(): string | undefined {
    return this.#utterance?.id;
  }

  /** Samples that wait, in milliseconds. */
  get queuedMs(): number {
    const utterance = this.#utterance;
    return utterance ? this.#ms(utterance.pushed - utterance.sent) : 0;
  }

  /** Audio of the utterance so far, sent or not, in milliseconds. */
  get pushedMs(): number {
    return this.#utterance ? this.#ms(this.#utterance.pushed) : 0;
  }

  get hasRoom(): boolean {
    return this.queuedMs < queuedMsMax;
  }

  /** Whether sending began. */
  get isStarted(): boolean {
    return this.#utterance?.startMs !== undefined;
  }

  /** A client that cannot drop what it has buffered gets a short lead. */
  limitLead(leadMs: number): void {
    this.#leadMs = Math.min(this.#options.leadMs, leadMs);
  }

  /** @throws Error when another utterance has not ended */
  begin(utteranceId: string): void {
    if (this.#utterance) throw new Error(`Cannot begin utterance ${utteranceId}: ${this.#utterance.id} has not ended`);
    this.#utterance = {
      id: utteranceId,
      chunks: [],
      keptFrom: 0,
      pushed: 0,
      sent: 0,
      finished: false,
      endMarked: false,
      startMs: undefined,
      anchor: undefined,
      markPositionsMs: new Map(),
    };
  }

  /** Adds samples, which become the playout's own. */
  push(samples: Int16Array): void {
    const utterance = this.#utterance;
    if (!utterance || utterance.finished || samples.length === 0) return;
    utterance.chunks.push(samples);
    utterance.pushed += samples.length;
  }

  /** No more samples follow: the rest goes out, a short last frame included, then the end mark. */
  finish(): void {
    if (this.#utterance) this.#utterance.finished = true;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
  }

  reportUnsent(unsentMs: number): void {
    this.#throttled = unsentMs > unsentMsMax;
  }

  /** Sends what is due. */
  pump(nowMs: number): void {
    const utterance = this.#utterance;
    if (!utterance || this.#paused || this.#throttled) return;
    while (this.#utterance === utterance && this.#isDue(utterance, nowMs)) this.#sendFrame(utterance, nowMs);
    if (
      this.#utterance === utterance &&
      utterance.finished &&
      utterance.sent === utterance.pushed &&
      !utterance.endMarked
    ) {
      utterance.endMarked = true;
      if (utterance.sent > 0) this.#sendMark(utterance, `end:${utterance.id}`);
    }
  }

  #isDue(utterance: Utterance, nowMs: number): boolean {
    const waiting = utterance.pushed - utterance.sent;
    if (waiting === 0 || (waiting < this.#frame.length && !utterance.finished)) return false;
    utterance.startMs ??= nowMs;
    const sentMs = this.#ms(utterance.sent);
    const aheadMs = sentMs - (nowMs - utterance.startMs);
    if (aheadMs <= 0) {
      // The client's buffer ran dry: its clock went on without audio, and what was played did not grow.
      if (utterance.anchor) utterance.anchor = { playedMs: this.#playedMs(utterance, nowMs), atMs: nowMs };
      utterance.startMs = nowMs - sentMs;
      return true;
    }
    return aheadMs + this.#options.frameMs <= this.#leadMs;
  }

  #sendFrame(utterance: Utterance, nowMs: number): void {
    const isFirst = utterance.sent === 0;
    const length = Math.min(this.#frame.length, utterance.pushed - utterance.sent);
    this.#sink.frame(this.#read(utterance, utterance.sent, length));
    utterance.sent += length;
    if (isFirst) this.#sendMark(utterance, `start:${utterance.id}`);
    this.#forgetPlayed(utterance, nowMs);
  }

  /** `length` samples from `from` on: a view where they lie in one chunk, else copied into the one frame. */
  #read(utterance: Utterance, from: number, length: number): Int16Array {
    let chunkStart = utterance.keptFrom;
    let filled = 0;
    for (const chunk of utterance.chunks) {
      const chunkEnd = chunkStart + chunk.length;
      const at = from + filled;
      if (chunkEnd > at) {
        const take = Math.min(length - filled, chunkEnd - at);
        const part = chunk.subarray(at - chunkStart, at - chunkStart + take);
        if (take === length) return part;
        this.#frame.set(part, filled);
        filled += take;
        if (filled === length) break;
      }
      chunkStart = chunkEnd;
    }
    return this.#frame.subarray(0, length);
  }

  #sendMark(utterance: Utterance, name: string): void {
    utterance.markPositionsMs.set(name, this.#ms(utterance.sent));
    this.#sink.mark(name);
  }

  #forgetPlayed(utterance: Utterance, nowMs: number): void {
    const played = this.#samples(this.#playedMs(utterance, nowMs));
    for (
      let first = utterance.chunks[0];
      first && utterance.keptFrom + first.length <= played;
      first = utterance.chunks[0]
    ) {
      utterance.chunks.shift();
      utterance.keptFrom += first.length;
    }
  }

  /** The client reports that a mark was played, or cleared. Unknown names are ignored. */
  heardMark(name: string, cleared: boolean, nowMs: number): void {
    const utterance = this.#utterance;
    const positionMs = utterance?.markPositionsMs.get(name);
    if (!utterance || positionMs === undefined || cleared) return;
    if (positionMs >= (utterance.anchor?.playedMs ?? 0)) utterance.anchor = { playedMs: positionMs, atMs: nowMs };
  }

  /** Whether the utterance was heard to its end. */
  isOver(nowMs: number): boolean {
    const utterance = this.#utterance;
    return utterance?.endMarked === true && this.#playedMs(utterance, nowMs) >= this.#ms(utterance.pushed);
  }

  /** Whether the client has played all that could be sent: nothing is in the air. */
  isQuiet(nowMs: number): boolean {
    const utterance = this.#utterance;
    if (!utterance) return true;
    if (utterance.pushed - utterance.sent >= this.#frame.length) return false;
    return this.#playedMs(utterance, nowMs) >= this.#ms(utterance.sent);
  }

  /** How much of the utterance was probably heard; 0 without one. */
  playedMs(nowMs: number): number {
    return this.#utterance ? this.#playedMs(this.#utterance, nowMs) : 0;
  }

  /** Ends the utterance that was heard to its end. */
  end(): { utteranceId: string; audioMs: number } | undefined {
    const utterance = this.#utterance;
    this.#utterance = undefined;
    return utterance && { utteranceId: utterance.id, audioMs: this.#ms(utterance.pushed) };
  }

  /** Stops the utterance where it is heard now: nothing of it is sent any more. */
  cut(nowMs: number): Cut | undefined {
    const utterance = this.#utterance;
    if (!utterance) return undefined;
    this.#utterance = undefined;
    const played = this.#samples(this.#playedMs(utterance, nowMs));
    const rest: Int16Array[] = [];
    let chunkStart = utterance.keptFrom;
    for (const chunk of utterance.chunks) {
      const chunkEnd = chunkStart + chunk.length;
      if (chunkEnd > played) rest.push(chunk.subarray(Math.max(0, played - chunkStart)));
      chunkStart = chunkEnd;
    }
    return {
      utteranceId: utterance.id,
      playedMs: this.#ms(played),
      sentMs: this.#ms(utterance.sent),
      rest,
      finished: utterance.finished,
    };
  }

  #playedMs(utterance: Utterance, nowMs: number): number {
    if (utterance.startMs === undefined) return 0;
    const sentMs = this.#ms(utterance.sent);
    const { anchor } = utterance;
    if (anchor) return Math.min(sentMs, anchor.playedMs + nowMs - anchor.atMs);
    const startDelayMs = Math.min(this.#leadMs, startDelayMsMax);
    return Math.min(sentMs, Math.max(0, nowMs - utterance.startMs - startDelayMs));
  }

  #ms(samples: number): number {
    return (samples * 1000) / this.#options.sampleRateHz;
  }

  #samples(ms: number): number {
    return Math.floor((ms * this.#options.sampleRateHz) / 1000);
  }
}
