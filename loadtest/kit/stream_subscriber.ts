/** One client of a run's stream: a bare socket, so that a thousand of them cost the load tool little. */
import { connect, type Socket } from "node:net";
import { EventScanner, type ScannedEvents } from "./event_scanner.ts";

export interface StreamRequest {
  port: number;
  /** The app's hostname. */
  host: string;
  accessKey: string;
  path: string;
  /** Given: a POST. */
  body?: unknown;
  /** Reads nothing of the answer until `resume`. */
  stalled?: boolean;
}

/** All sockets are read into it, one after the other: what is in it is dealt with at once. */
const readBuffer = Buffer.alloc(256 * 1024);

export class StreamSubscriber {
  readonly #socket: Socket;
  readonly #scanner: EventScanner;
  #status = 0;
  #opened: () => void = () => undefined;
  #closed: () => void = () => undefined;
  /** Settles with the first byte of the answer, or when there will be none. */
  readonly opened: Promise<void> = new Promise((resolve) => {
    this.#opened = resolve;
  });
  /** Settles when the stream is over, completely or not. */
  readonly closed: Promise<void> = new Promise((resolve) => {
    this.#closed = resolve;
  });
  bytes = 0;

  constructor(request: StreamRequest, events: ScannedEvents) {
    this.#scanner = new EventScanner(events);
    const take = (size: number, buffer: Buffer) => {
      this.bytes += size;
      const chunk = buffer.subarray(0, size);
      if (this.#status === 0) {
        this.#status = Number(chunk.toString("latin1", 9, 12));
        this.#opened();
      }
      this.#scanner.push(chunk);
      if (this.#scanner.hasEnded) this.close();
    };
    const onread = {
      buffer: readBuffer,
      callback: (size: number, buffer: Uint8Array) => {
        take(size, buffer as Buffer);
        return true;
      },
    };
    this.#socket = connect({ host: "127.0.0.1", port: request.port, noDelay: true, onread });
    this.#socket.on("error", () => this.close());
    this.#socket.on("close", () => this.close());
    this.#socket.on("end", () => this.close());
    this.#socket.once("connect", () => {
      if (request.stalled) this.#socket.pause();
      this.#socket.write(requestText(request));
    });
  }

  /** Of the answer; 0 before there is one. */
  get status(): number {
    return this.#status;
  }

  get lastId(): number {
    return this.#scanner.lastId;
  }

  get gaps(): number {
    return this.#scanner.gaps;
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
    this.#opened();
    this.#closed();
  }
}

/** HTTP/1.1 as curl would send it. */
function requestText({ host, accessKey, path, body }: StreamRequest): string {
  const text = body === undefined ? "" : JSON.stringify(body);
  const head = [
    `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${accessKey}`,
    "Accept: text/event-stream",
    ...(body === undefined ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return `${head.join("\r\n")}\r\n\r\n${text}`;
}
