/**
 * An HTTP and WebSocket server as the gateway sees it: one small interface, implemented on
 * uWebSockets.js (`uws_transport.ts`) and on node:http with `ws` (`ws_transport.ts`), and one
 * contract suite over both (`transport_contract.test.ts`).
 *
 * Whatever is handed out here is a copy: it stays valid after the callback that delivered it.
 */

import type { TurnLimits } from "./request_turns.ts";

/** Head of a request. Header names are lower case; repeated headers are joined with ", ". */
export interface RequestHead {
  method: string;
  /** Undecoded and not normalized, as it came. */
  path: string;
  /** Without the "?"; empty when there is none. */
  query: string;
  headers: Readonly<Record<string, string>>;
  /** The caller's IP address: the peer's, or behind trusted proxies the one that they say. */
  remoteAddress: string;
  /** Aborted when the peer is gone before the answer is complete. */
  signal: AbortSignal;
}

export interface HttpRequest extends RequestHead {
  /** Whether a body was announced. */
  hasBody: boolean;
  /** The body's bytes, read no faster than they are consumed. To be iterated once; throws when the peer is gone. */
  body(): AsyncIterable<Uint8Array>;
}

export type ResponseHeaders = readonly (readonly [name: string, value: string])[];

/** Answers one request, once. After the peer is gone every call is ignored. */
export interface HttpResponse {
  /**
   * The whole answer. A request body that was not read to its end closes the connection, at the latest
   * some seconds later. A 204 and a 304 have no `content-length`.
   */
  send(status: number, headers: ResponseHeaders, body?: Uint8Array | string): void;
  /** An answer in pieces. A `content-length` among the headers is left out: the body is chunked. */
  stream(status: number, headers: ResponseHeaders): ResponseStream;
}

export interface ResponseStream {
  /** False: stop writing until `onWritable`. What is written nevertheless is queued without bound. */
  write(chunk: Uint8Array): boolean;
  /** Called each time that writing makes sense again. */
  onWritable(listener: () => void): void;
  end(): void;
  /** Cuts the connection, so that the peer sees that the answer is incomplete. */
  destroy(): void;
}

/** A request to upgrade; to be answered once, at any time. `head.signal` tells that the peer is gone. */
export interface UpgradeRequest {
  head: RequestHead;
  /** Refuses with a normal HTTP answer. */
  refuse(status: number, headers: ResponseHeaders, body: string): void;
  /**
   * Answers 101 and hands over the socket, or undefined when the peer is gone. Nothing is heard of the
   * socket before, but its end may be.
   */
  accept(events: SocketEvents, subprotocol?: string): Promise<TransportSocket | undefined>;
}

/** Why a socket is gone. */
export type SocketEnd =
  /** The peer sent a close frame (or answered ours). 1005: a frame without a code. */
  | { kind: "closed"; code: number; reason: string }
  /** No close frame: the connection broke. */
  | { kind: "lost" }
  /** The peer broke the protocol, and the transport itself has closed the socket. */
  | { kind: "violation"; violation: "too_big" | "bad_encoding" | "protocol" };

export interface SocketEvents {
  onText(text: string): void;
  /** The bytes are the listener's to keep. */
  onBinary(bytes: Uint8Array): void;
  /** A message above `messageBytesMax`, dropped: to be answered with `close(1009)`. */
  onOversized(): void;
  /** Any frame, pings and pongs included: the link lives. Called before the frame's own event. */
  onFrame(): void;
  /** The answer to a `ping`, with what that carried. */
  onPong(payload: string): void;
  /** Some of what was unsent has left. */
  onDrain(): void;
  /** Once, last. */
  onEnd(end: SocketEnd): void;
}

/** One WebSocket. Every method is safe after its end and then does nothing. */
export interface TransportSocket {
  sendText(text: string): void;
  sendBinary(bytes: Uint8Array): void;
  /** Bytes that were sent but have not reached the kernel. */
  unsentBytes(): number;
  /** The peer returns `payload`, at most 125 bytes, behind all that was sent before; of several pings at least the newest (RFC 6455, 5.5.3). */
  ping(payload?: string): void;
  /** Sends what `write` sends in one go. */
  batch(write: () => void): void;
  /** A close frame, behind everything that was sent. `onEnd` follows, at the latest some seconds later. */
  close(code: number, reason: string): void;
  /** Cuts the connection. */
  terminate(): void;
}

export interface TransportHandlers {
  /** Must not throw; a rejection is answered with 500. */
  onRequest(request: HttpRequest, response: HttpResponse): void | Promise<void>;
  onUpgrade(upgrade: UpgradeRequest): void | Promise<void>;
}

export interface Transport {
  readonly name: "uws" | "ws";
  /** @returns the port; @throws when the address cannot be had */
  listen(host: string, port: number): Promise<number>;
  /** Stops listening and cuts every connection. */
  close(): Promise<void>;
}

export interface TransportOptions {
  /** Largest WebSocket message that is handed over. */
  messageBytesMax: number;
  /** Of clients that read nothing, where the library has no limits of its own. Tests have shorter ones. */
  turnLimits?: Partial<TurnLimits>;
}

/**
 * A transport must see a larger message as a whole to close it with 1009 rather than by cutting
 * the connection. Beyond this multiple of `messageBytesMax` it may cut.
 */
export const oversizeFactor = 16;

/** Bytes that a peer may have unsent before the transport itself refuses: a last resort, above every policy of a call. */
export const socketBacklogBytesMax = 8 * 1024 * 1024;

/** Thrown from `body()` when the peer went away in the middle of its request. */
export class RequestAbortedError extends Error {
  constructor() {
    super("The peer closed the connection before its request was complete");
    this.name = "RequestAbortedError";
  }
}

/** Whether an answer ends with its head (RFC 9110, section 6.4.1). Pure. */
export function isBodyless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/**
 * The `content-length` of an answer that ends with its head: for HEAD the body's that is left out, where it is
 * known. With 204 it is forbidden (RFC 9110, section 8.6), and with 304 clients miss the body (undici 7). Pure.
 */
export function lengthOfNoBody(
  status: number,
  headers: ResponseHeaders,
  bytes: number | undefined,
): number | undefined {
  if (status === 204 || status === 304) return undefined;
  const announced = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1];
  return announced === undefined ? bytes : Number(announced);
}

/** Reason phrases are decoration in HTTP/1.1, but uWebSockets.js wants them spelled out. */
export function statusLine(status: number): string {
  return `${status} ${reasonPhrases[status] ?? "Status"}`;
}

const reasonPhrases: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  206: "Partial Content",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};
