/**
 * A room as the socket of a call: `voice.v1` goes over it as over a WebSocket, audio is a track. What
 * the source in the room has not taken yet is unsent, so that the source's queue paces the call.
 */
import type { SocketEnd, SocketEvents, TransportSocket } from "../transport/transport.ts";
import type { Seat } from "./seat_pool.ts";

export class RoomLink implements TransportSocket {
  readonly #seat: Seat;
  readonly #events: SocketEvents;
  readonly #onClosed: (reason: string) => void;
  /** Counted from the seat's beginning, as its reports are. */
  #sentBytes: number;
  #takenBytes: number;
  #isOver = false;

  /** @param options.sentBytes what was sent over the seat before; `onClosed` is told when the call itself closes it */
  constructor(seat: Seat, events: SocketEvents, options: { sentBytes: number; onClosed: (reason: string) => void }) {
    this.#seat = seat;
    this.#events = events;
    this.#onClosed = options.onClosed;
    this.#sentBytes = options.sentBytes;
    this.#takenBytes = options.sentBytes;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  // What the seat reports.

  heardText(text: string): void {
    if (this.#isOver) return;
    this.#events.onFrame();
    this.#events.onText(text);
  }

  heardAudio(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#events.onFrame();
    this.#events.onBinary(bytes);
  }

  oversized(): void {
    if (!this.#isOver) this.#events.onOversized();
  }

  taken(bytes: number): void {
    this.#takenBytes = Math.max(this.#takenBytes, Math.min(bytes, this.#sentBytes));
    if (!this.#isOver) this.#events.onDrain();
  }

  /** The seat answers: the process, and with it the connection that it watches, lives. */
  pong(): void {
    if (!this.#isOver) this.#events.onFrame();
  }

  /** The caller is gone, or cannot be reached. */
  ended(end: SocketEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.onEnd(end);
  }

  // What the call does.

  sendText(text: string): void {
    if (!this.#isOver) this.#seat.text(text);
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#sentBytes += bytes.byteLength;
    this.#seat.audio(bytes);
  }

  unsentBytes(): number {
    return this.#isOver ? 0 : this.#sentBytes - this.#takenBytes;
  }

  /** What was delivered, a room's marks tell: only a sign of life is asked for. */
  ping(payload?: string): void {
    if (!this.#isOver && payload === undefined) this.#seat.ping();
  }

  batch(write: () => void): void {
    write();
  }

  close(_code: number, reason: string): void {
    this.#close(reason);
  }

  terminate(): void {
    this.#isOver = true;
  }

  #close(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onClosed(reason);
  }
}
