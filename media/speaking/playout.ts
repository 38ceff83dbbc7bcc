/**
 * Paces one utterance at a time onto the wire: the first frame at once, a burst that fills the
 * client's buffer (the lead), then real time. Keeps what was sent until it was probably heard, so
 * that a barge-in can be taken back from the very sample where it cut.
 *
 * How much was played: the newest mark that the client echoed anchors the estimate, which then runs
 * with the clock; without marks it is the time since the first frame less the client's start-up
 * delay. Never more than was sent.
 *
 * How much was heard is never more than the client has acknowledged, where it acknowledges anything: a
 * client that echoes marks has not played what comes after the first one that it has not echoed, and what
 * was not delivered when its link stood still, or was lost, was not heard.
 */

/** Speech that waits here above this stops the pull from text to speech. */
export const queuedMsMax = 2000;
/** Unsent audio in the transport above this stops the pacing. */
export const unsentMsMax = 1000;
/** A mark is sent for each second of audio. */
export const markEveryMs = 1000;
/** How long the end of an utterance waits for its acknowledgement. */
export const acknowledgedWithinMs = 2000;
/** Sent audio that is not known to be delivered is kept for so long, to be sent again after a lost link. */
export const keptMsMax = 10_000;
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

/** What is known of how much was heard: the client's marks, what its stack took, or the clock alone. */
export type HeardBasis = "mark" | "delivery" | "clock";

export interface Cut {
  utteranceId: string;
  playedMs: number;
  basis: HeardBasis;
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
  /** The newest echoed mark, and from where on the clock goes on. */
  anchor: { echoedMs: number; playedMs: number; atMs: number } | undefined;
  markPositionsMs: Map<string, number>;
  /** Up to where audio has had its marks. */
  markedMs: number;
  /** The client has taken it up to here; undefined where it does not tell. */
  deliveredMs: number | undefined;
}

export class Playout {
  readonly #options: PlayoutOptions;
  readonly #sink: PlayoutSink;
  readonly #frame: Int16Array;
  #leadMs: number;
  #utterance: Utterance | undefined;
  #paused = false;
  #throttled = false;
  /** Audio of all utterances that was handed over, and that the client has taken of it. */
  #handedOverMs = 0;
  #deliveredMs: number | undefined;

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
      markedMs: 0,
      deliveredMs: this.#deliveredMs === undefined ? undefined : 0,
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

  /**
   * Nothing is sent until `resume`: the link is lost. Where the client tells what it has taken, the rest will be
   * sent again.
   * @returns how much that is, in milliseconds
   */
  pause(): number {
    this.#paused = true;
    const utterance = this.#utterance;
    if (!utterance || utterance.deliveredMs === undefined) return 0;
    const from = Math.max(this.#samples(utterance.deliveredMs), utterance.keptFrom);
    if (from >= utterance.sent) return 0;
    const undeliveredMs = this.#ms(utterance.sent - from);
    utterance.sent = from;
    for (const [name, positionMs] of utterance.markPositionsMs) {
      if (positionMs > this.#ms(from)) utterance.markPositionsMs.delete(name);
    }
    utterance.markedMs = Math.floor(this.#ms(from) / markEveryMs) * markEveryMs;
    return undeliveredMs;
  }

  resume(): void {
    this.#paused = false;
    // The answer to its end may be lost with the link.
    if (this.#utterance) this.#utterance.endMarked = false;
  }

  /** The client has taken so much of all that was ever handed to the sink. */
  reportDelivered(audioMs: number): void {
    this.#deliveredMs = audioMs;
    const utterance = this.#utterance;
    if (!utterance) return;
    const missingMs = Math.max(0, this.#handedOverMs - audioMs);
    utterance.deliveredMs = Math.max(utterance.deliveredMs ?? 0, this.#ms(utterance.sent) - missingMs);
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
      const { anchor } = utterance;
      if (anchor) utterance.anchor = { ...anchor, playedMs: this.#playedMs(utterance, nowMs), atMs: nowMs };
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
    this.#handedOverMs += this.#ms(length);
    if (isFirst) this.#sendMark(utterance, `start:${utterance.id}`);
    else if (this.#ms(utterance.sent) - utterance.markedMs >= markEveryMs) this.#markSecond(utterance);
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

  #markSecond(utterance: Utterance): void {
    utterance.markedMs += markEveryMs;
    this.#sendMark(utterance, `at:${utterance.id}:${utterance.markedMs}`);
  }

  #sendMark(utterance: Utterance, name: string): void {
    utterance.markPositionsMs.set(name, this.#ms(utterance.sent));
    this.#sink.mark(name);
  }

  #forgetPlayed(utterance: Utterance, nowMs: number): void {
    const heardMs = Math.min(this.#heardMs(utterance, nowMs), utterance.deliveredMs ?? Number.POSITIVE_INFINITY);
    const played = this.#samples(Math.max(heardMs, this.#ms(utterance.sent) - keptMsMax));
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
    if (positionMs < (utterance.anchor?.playedMs ?? 0)) {
      // Slower than the clock has it.
      if (utterance.anchor) utterance.anchor.echoedMs = Math.max(utterance.anchor.echoedMs, positionMs);
      return;
    }
    utterance.anchor = { echoedMs: positionMs, playedMs: positionMs, atMs: nowMs };
  }

  /** Whether the utterance was heard to its end. */
  isOver(nowMs: number): boolean {
    const utterance = this.#utterance;
    if (!utterance?.endMarked) return false;
    const lengthMs = this.#ms(utterance.pushed);
    const isAcknowledged =
      this.#heardMs(utterance, nowMs) >= lengthMs && (utterance.deliveredMs ?? lengthMs) >= lengthMs;
    if (isAcknowledged) return this.#playedMs(utterance, nowMs) >= lengthMs;
    return !this.#throttled && this.#playedMs(utterance, nowMs - acknowledgedWithinMs) >= lengthMs;
  }

  /** Whether the client has played all that could be sent: nothing is in the air. */
  isQuiet(nowMs: number): boolean {
    const utterance = this.#utterance;
    if (!utterance) return true;
    if (utterance.pushed - utterance.sent >= this.#frame.length) return false;
    return this.#playedMs(utterance, nowMs) >= this.#ms(utterance.sent);
  }

  /** How much of the utterance was heard; 0 without one. */
  heardMs(nowMs: number): number {
    return this.#utterance ? this.#heardMs(this.#utterance, nowMs) : 0;
  }

  /** Ends the utterance that was played to its end. */
  end(nowMs: number): { utteranceId: string; audioMs: number; heardMs: number; basis: HeardBasis } | undefined {
    const utterance = this.#utterance;
    if (!utterance) return undefined;
    this.#utterance = undefined;
    return {
      utteranceId: utterance.id,
      audioMs: this.#ms(utterance.pushed),
      heardMs: this.#heardMs(utterance, nowMs),
      basis: basisOf(utterance),
    };
  }

  /** Stops the utterance where it is heard now: nothing of it is sent any more. */
  cut(nowMs: number): Cut | undefined {
    const utterance = this.#utterance;
    if (!utterance) return undefined;
    this.#utterance = undefined;
    const played = this.#samples(this.#heardMs(utterance, nowMs));
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
      basis: basisOf(utterance),
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

  /** What was played by the clock, as far as it was acknowledged. */
  #heardMs(utterance: Utterance, nowMs: number): number {
    const { anchor, deliveredMs, markPositionsMs } = utterance;
    let heardMs = this.#playedMs(utterance, nowMs);
    const isStandingStill = this.#throttled || this.#paused;
    if (isStandingStill && deliveredMs !== undefined)
      heardMs = Math.min(heardMs, Math.max(deliveredMs, anchor?.echoedMs ?? 0));
    if (!anchor) return heardMs;
    // They are in order of their positions.
    for (const positionMs of markPositionsMs.values())
      if (positionMs > anchor.echoedMs) return Math.min(heardMs, positionMs);
    return heardMs;
  }

  #ms(samples: number): number {
    return (samples * 1000) / this.#options.sampleRateHz;
  }

  #samples(ms: number): number {
    return Math.floor((ms * this.#options.sampleRateHz) / 1000);
  }
}

function basisOf({ anchor, deliveredMs }: Utterance): HeardBasis {
  if (anchor) return "mark";
  return deliveredMs === undefined ? "clock" : "delivery";
}
