/**
 * Reads a run's event stream off the raw bytes of its HTTP response, without a copy of any event:
 * only where events begin, what their ids are and when they are complete. A load test has a
 * thousand readers and one core.
 *
 * A frame ends in an empty line; JSON has no line break, so `\n\n` is nothing else. Chunk sizes of
 * the transfer encoding stand between frames, because the gateway writes whole ones.
 */
const frameEnd = Buffer.from("\n\n");
const idField = Buffer.from("\nid: ");
const createdField = Buffer.from('"created_at":"');
const lastChunk = Buffer.from("0\r\n\r\n");
const isoTimeBytes = 24;

export interface ScannedEvents {
  /** `bytes` and `at`: where the event is, for `createdAtMs`. */
  onEvent(id: number, bytes: Buffer, at: number): void;
}

export class EventScanner {
  readonly #events: ScannedEvents;
  #rest: Buffer = Buffer.alloc(0);
  #lastId: number;
  #hasEnded = false;
  /** Events whose id was not the next one: must stay 0. */
  gaps = 0;

  /** @param cursor the event before the first one that is expected */
  constructor(events: ScannedEvents, cursor = 0) {
    this.#events = events;
    this.#lastId = cursor;
  }

  get lastId(): number {
    return this.#lastId;
  }

  /** Whether the response is over. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @param chunk may be overwritten afterwards */
  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = bytes.lastIndexOf(frameEnd);
    for (let at = bytes.indexOf(idField); at >= 0 && at < end; at = bytes.indexOf(idField, at)) {
      at += idField.length;
      const id = numberAt(bytes, at);
      if (id !== this.#lastId + 1) this.gaps += 1;
      this.#lastId = id;
      this.#events.onEvent(id, bytes, at);
    }
    // The break before an id may be the one that ended what is done with.
    this.#rest = Buffer.from(bytes.subarray(end < 0 ? 0 : end + 1));
    const { length } = this.#rest;
    this.#hasEnded =
      length >= lastChunk.length && this.#rest.compare(lastChunk, 0, lastChunk.length, length - lastChunk.length) === 0;
  }
}

function numberAt(bytes: Buffer, at: number): number {
  let number = 0;
  for (let i = at; ; i += 1) {
    const digit = (bytes[i] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return number;
    number = number * 10 + digit;
  }
}

/** When the event at this place was created, in Unix milliseconds. */
export function createdAtMs(bytes: Buffer, at: number): number {
  const from = bytes.indexOf(createdField, at) + createdField.length;
  return Date.parse(bytes.toString("latin1", from, from + isoTimeBytes));
}
