/**
 * Requests that a client sends ahead of its answers (pipelining, RFC 9112, section 9.3.2). node:http hands over
 * all that have arrived, so a client that reads nothing could have any number of answers made for it. Here one
 * request of a socket is handled at a time, and the next one when its answer has left; while others wait the
 * socket is not read, and a client that does not read its answers is cut.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface TurnLimits {
  /** Requests that wait for their turn, of all sockets: what one read of each brought. */
  waiting: number;
  /** Bytes of whole answers that clients have not taken, of all sockets. */
  unreadBytes: number;
  /** Without any progress of an answer that is whole. */
  stalledMs: number;
}

export const turnLimits: Readonly<TurnLimits> = {
  waiting: 10_000,
  unreadBytes: 64 * 1024 * 1024,
  stalledMs: 30_000,
};

interface Turn {
  response: ServerResponse;
  handle(): void;
}

interface Line {
  isBusy: boolean;
  waiting: Turn[];
}

export class RequestTurns {
  readonly #limits: TurnLimits;
  readonly #lines = new WeakMap<Socket, Line>();
  /** Sockets with an answer that has not left, the longest first. */
  readonly #unread = new Map<Socket, number>();
  #unreadBytes = 0;
  #waiting = 0;

  constructor(limits: Partial<TurnLimits> = {}) {
    this.#limits = { ...turnLimits, ...limits };
  }

  /** Handles the request when its turn has come; never, when its socket is gone before. */
  take(socket: Socket, turn: Turn): void {
    const line = this.#lines.get(socket) ?? this.#open(socket);
    if (!line.isBusy) {
      this.#begin(socket, line, turn);
    } else if (this.#waiting >= this.#limits.waiting) {
      socket.destroy();
    } else {
      line.waiting.push(turn);
      this.#waiting += 1;
      socket.pause();
    }
  }

  #open(socket: Socket): Line {
    const line: Line = { isBusy: false, waiting: [] };
    this.#lines.set(socket, line);
    // node:http resumes its sockets for reasons of its own.
    socket.on("resume", () => line.waiting.length > 0 && socket.pause());
    socket.once("close", () => {
      this.#waiting -= line.waiting.length;
      line.waiting = [];
      line.isBusy = true;
      this.#forget(socket);
    });
    return line;
  }

  #begin(socket: Socket, line: Line, { response, handle }: Turn): void {
    line.isBusy = true;
    response.once("prefinish", () => this.#stands(socket));
    response.once("finish", () => {
      this.#forget(socket);
      this.#next(socket, line);
    });
    handle();
  }

  #next(socket: Socket, line: Line): void {
    if (socket.destroyed) return;
    const turn = line.waiting.shift();
    line.isBusy = false;
    if (!turn) return;
    this.#waiting -= 1;
    // What was set for the answer before is not this one's.
    socket.setTimeout(0);
    this.#begin(socket, line, turn);
    if (line.waiting.length === 0) socket.resume();
  }

  /** The answer is whole, and its client's to take. */
  #stands(socket: Socket): void {
    socket.setTimeout(this.#limits.stalledMs);
    const bytes = socket.writableLength;
    this.#unread.set(socket, bytes);
    this.#unreadBytes += bytes;
    while (this.#unreadBytes > this.#limits.unreadBytes) {
      const [longest] = this.#unread.keys();
      if (!longest) return;
      this.#forget(longest);
      longest.destroy();
    }
  }

  #forget(socket: Socket): void {
    this.#unreadBytes -= this.#unread.get(socket) ?? 0;
    this.#unread.delete(socket);
  }
}
