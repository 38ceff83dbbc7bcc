/**
 * One client of one run's stream: a cursor and a connection. While the connection takes what is
 * written the reader follows the feed; once it does not, nothing more is written and nothing is kept
 * but the cursor, and the reader reads on from there when the connection drains.
 */
import { isTerminalEvent, runLimits } from "#contracts/run_event.ts";
import type { ResponseStream } from "../transport/transport.ts";
import type { FeedReader, RunFeed } from "./run_feed.ts";
import { type ClosingReason, closingBytes, type EventFrame, goneBytes, heartbeatBytes, joined } from "./sse_frame.ts";

/** One write, of which a stuck connection may hold two. A larger frame goes out in pieces. */
const writeBytesMax = 8 * 1024;

export interface ReaderOptions {
  feed: RunFeed;
  stream: ResponseStream;
  /** Events up to here are known to the client. */
  cursor: number;
  /** Empty: all. */
  types: readonly string[];
  /** When the connection is to be renewed, on `performance.now()`'s clock. */
  endsAtMs: number;
  /** Once, when the reader is over. `completed`: the run's last event was sent. */
  onEnd(end: { completed: boolean }): void;
  onError(error: unknown): void;
}

export class StreamReader implements FeedReader {
  readonly feed: RunFeed;
  readonly #options: ReaderOptions;
  readonly #types: ReadonlySet<string> | undefined;
  #cursor: number;
  /** Bytes that were sent of the frame after the cursor. */
  #sentOfNext = 0;
  #pausedSinceMs: number | undefined;
  #wroteMs = performance.now();
  #ended = false;
  #reading = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.feed = options.feed;
    this.#cursor = options.cursor;
    this.#types = options.types.length > 0 ? new Set(options.types) : undefined;
    options.stream.onWritable(() => {
      this.#pausedSinceMs = undefined;
      // What was left of the last write has just gone out: that is a sign of life.
      this.#wroteMs = performance.now();
      this.wake();
    });
    this.feed.readers.add(this);
  }

  wake(): void {
    if (this.#ended || this.#reading || this.#pausedSinceMs !== undefined) return;
    this.#reading = true;
    this.#follow()
      .catch((error: unknown) => {
        this.#options.onError(error);
        // What is broken is between the api and us; the client comes back with its cursor.
        if (!this.#ended) this.#finish({ completed: false }, closingBytes("drain"));
      })
      .finally(() => {
        this.#reading = false;
        if (this.#cursor < this.feed.lastId) this.wake();
      });
  }

  async #follow(): Promise<void> {
    while (!this.#ended && this.#pausedSinceMs === undefined) {
      const frames =
        this.feed.framesInWindow(this.#cursor, writeBytesMax) ??
        (await this.feed.framesAfter(this.#cursor, writeBytesMax));
      if (this.#ended || this.#pausedSinceMs !== undefined) return;
      if (!frames) return this.#finish({ completed: false }, goneBytes);
      if (frames.length === 0) return;
      this.#write(frames);
    }
  }

  /** The connection takes nothing at the moment. */
  get isPaused(): boolean {
    return this.#pausedSinceMs !== undefined;
  }

  /** As long as the connection takes it; what it does not take is read again from the cursor. */
  #write(frames: readonly EventFrame[]): void {
    for (let from = 0; from < frames.length && this.#pausedSinceMs === undefined; ) {
      let to = from;
      for (let bytes = 0; to < frames.length; to += 1) {
        bytes += frames[to]?.bytes.length ?? 0;
        if (to > from && bytes > writeBytesMax) break;
      }
      const taken = frames.slice(from, to);
      from = to;
      const last = taken.at(-1);
      if (!last) return;
      const wanted = this.#types ? taken.filter(({ type }) => this.#types?.has(type)) : taken;
      if (wanted.length > 0 && !this.#sendPieces(joined(wanted))) return;
      this.#cursor = last.id;
      if (isTerminalEvent(last.type)) this.#finish({ completed: true });
    }
  }

  /** Goes on where it paused in a frame. @returns whether all of it is sent */
  #sendPieces(bytes: Uint8Array): boolean {
    while (this.#sentOfNext < bytes.length) {
      if (this.#pausedSinceMs !== undefined) return false;
      const piece = bytes.subarray(this.#sentOfNext, this.#sentOfNext + writeBytesMax);
      this.#sentOfNext += piece.length;
      this.#send(piece);
    }
    this.#sentOfNext = 0;
    return true;
  }

  #send(bytes: Uint8Array): void {
    this.#wroteMs = performance.now();
    if (!this.#options.stream.write(bytes)) this.#pausedSinceMs ??= this.#wroteMs;
  }

  /** Now and then: heartbeat, renewal, and the end of a connection that takes nothing. */
  tick(nowMs: number): void {
    if (this.#ended) return;
    if (this.#pausedSinceMs !== undefined) {
      if (nowMs - this.#pausedSinceMs < runLimits.stalledReaderS * 1000) return;
      // Nothing can be told to a connection that takes nothing.
      this.#end({ completed: false });
      this.#options.stream.destroy();
      return;
    }
    if (nowMs >= this.#options.endsAtMs) this.leave("max_age");
    else if (this.#sentOfNext === 0 && nowMs - this.#wroteMs >= runLimits.heartbeatS * 1000) this.#send(heartbeatBytes);
  }

  /** Sends the client away, to come back with its cursor. */
  leave(reason: ClosingReason): void {
    if (!this.#ended) this.#finish({ completed: false }, closingBytes(reason));
  }

  /** The client is gone. */
  disconnected(): void {
    this.#end({ completed: false });
  }

  #finish(end: { completed: boolean }, lastBytes?: Uint8Array): void {
    // Words in the middle of a frame would be taken for a part of it; an unfinished frame is no event.
    if (lastBytes && this.#sentOfNext === 0) this.#options.stream.write(lastBytes);
    this.#options.stream.end();
    this.#end(end);
  }

  #end(end: { completed: boolean }): void {
    if (this.#ended) return;
    this.#ended = true;
    this.feed.readers.delete(this);
    this.#options.onEnd(end);
  }
}
