/** The newest events of one run, without a gap, as frames: what readers that keep up are served from. */

import type { LoggedEvent } from "#contracts/internal_runs.ts";
import { type EventFrame, eventFrame } from "./sse_frame.ts";

const framesMax = 1024;
const bytesMax = 1024 * 1024;

export class FrameWindow {
  #frames: EventFrame[] = [];
  #bytes = 0;
  #lastId: number;

  /** @param lastId the event before the window's first one */
  constructor(lastId: number) {
    this.#lastId = lastId;
  }

  /** Newest event that the window has, or had. */
  get lastId(): number {
    return this.#lastId;
  }

  get firstId(): number {
    return this.#lastId - this.#frames.length + 1;
  }

  /** Takes the events that continue the window; what it has already is ignored. @returns whether one is missing in between */
  push(events: readonly LoggedEvent[]): { gap: boolean } {
    return this.pushFrames(events.filter(({ id }) => id > this.#lastId).map(eventFrame));
  }

  /** As `push`, for events that are formatted already. */
  pushFrames(frames: readonly EventFrame[]): { gap: boolean } {
    let gap = false;
    for (const frame of frames) {
      if (frame.id <= this.#lastId) continue;
      gap = frame.id > this.#lastId + 1;
      if (gap) break;
      this.#frames.push(frame);
      this.#bytes += frame.bytes.length;
      this.#lastId = frame.id;
    }
    this.#trim();
    return { gap };
  }

  /** Frames after `cursor` of at most `bytesMax` bytes (one at least); undefined when the window does not reach back so far. */
  after(cursor: number, sliceBytesMax: number): readonly EventFrame[] | undefined {
    if (cursor >= this.#lastId) return [];
    if (cursor + 1 < this.firstId) return undefined;
    const from = cursor + 1 - this.firstId;
    let bytes = 0;
    let to = from;
    while (to < this.#frames.length) {
      bytes += this.#frames[to]?.bytes.length ?? 0;
      if (to > from && bytes > sliceBytesMax) break;
      to += 1;
    }
    return this.#frames.slice(from, to);
  }

  #trim(): void {
    let dropped = 0;
    while (this.#frames.length - dropped > framesMax || this.#bytes > bytesMax) {
      const frame = this.#frames[dropped];
      if (!frame || dropped === this.#frames.length - 1) break;
      this.#bytes -= frame.bytes.length;
      dropped += 1;
    }
    if (dropped > 0) this.#frames.splice(0, dropped);
  }
}
