/** The transport on node:http and `ws`, for machines where the native one does not load. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { BodyQueue } from "./body_queue.ts";
import { isFramedOnce, isPlainUpgrade } from "./request_framing.ts";
import { RequestTurns } from "./request_turns.ts";
import {
  type HttpResponse,
  isBodyless,
  lengthOfNoBody,
  oversizeFactor,
  type RequestHead,
  type ResponseHeaders,
  type ResponseStream,
  type SocketEnd,
  type SocketEvents,
  socketBacklogBytesMax,
  statusLine,
  type Transport,
  type TransportHandlers,
  type TransportOptions,
  type TransportSocket,
} from "./transport.ts";

/** Bytes that a client may send ahead of the 101 that it waits for. */
const earlyBytesMax = 64 * 1024;

export function createWsTransport(handlers: TransportHandlers, options: TransportOptions): Transport {
  let subprotocolOfUpgrade = "";
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: options.messageBytesMax * oversizeFactor,
    handleProtocols: () => subprotocolOfUpgrade || false,
  });
  const upgrading = new Set<Duplex>();
  const refused = new WeakSet<Duplex>();

  const turns = new RequestTurns(options.turnLimits);
  const server = createServer((req, res) => {
    turns.take(req.socket, { response: res, handle: () => answer(req, res) });
  });

  function answer(req: IncomingMessage, res: ServerResponse): void {
    const abort = new AbortController();
    const body = new BodyQueue({ pause: () => req.pause(), resume: () => req.resume() });
    const hasBody = (req.headers["content-length"] ?? "0") !== "0" || "transfer-encoding" in req.headers;
    if (hasBody) {
      req.on("data", (chunk: Buffer) => body.push(chunk, false));
      req.on("end", () => body.push(new Uint8Array(), true));
    } else body.push(new Uint8Array(), true);
    req.on("error", () => body.abort());
    let hasLeft = false;
    res.on("finish", () => {
      // node:http also says so of an answer that was on its way when its socket was destroyed.
      hasLeft = !req.socket.destroyed;
    });
    res.on("close", () => {
      if (hasLeft) return;
      abort.abort();
      body.abort();
    });
    const response = new NodeResponse(req, res, body);
    const head = headOf(req, abort.signal);
    if (refused.has(req.socket)) return;
    if (!isFramedOnce(head.headers)) {
      // What came with it is parsed already.
      refused.add(req.socket);
      res.shouldKeepAlive = false;
      response.send(400, []);
      return;
    }
    run(
      () => handlers.onRequest({ ...head, hasBody, body: () => body }, response),
      () => response.send(500, []),
    );
  }

  server.on("upgrade", (req: IncomingMessage, socket: Socket, early: Buffer) => {
    const abort = new AbortController();
    const waiting = [early];
    let answered = false;
    let earlyBytes = early.byteLength;
    upgrading.add(socket);

    // The socket must be read, or a peer that went away is not noticed.
    const keep = (chunk: Buffer) => {
      earlyBytes += chunk.byteLength;
      if (earlyBytes > earlyBytesMax) socket.destroy();
      else waiting.push(chunk);
    };
    const gone = () => {
      answered = true;
      abort.abort();
      upgrading.delete(socket);
      socket.destroy();
    };
    const settle = () => {
      answered = true;
      upgrading.delete(socket);
      socket.off("data", keep).off("close", gone).off("end", gone).off("error", gone);
    };
    socket.on("data", keep).on("close", gone).on("end", gone).on("error", gone);

    const refuse = (status: number, headers: ResponseHeaders, body: string) => {
      if (answered) return;
      settle();
      socket.on("error", () => socket.destroy());
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const length = `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n`;
      socket.end(`HTTP/1.1 ${statusLine(status)}\r\n${lines}${length}\r\n${body}`);
    };
    const head = headOf(req, abort.signal);
    if (!isFramedOnce(head.headers) || !isPlainUpgrade(head.headers)) return refuse(400, [], "");
    if (req.headers["sec-websocket-version"] !== "13") return refuse(426, [["sec-websocket-version", "13"]], "");
    if (!/^[+/0-9A-Za-z]{22}==$/.test(req.headers["sec-websocket-key"] ?? "")) return refuse(400, [], "");

    run(
      () =>
        handlers.onUpgrade({
          head,
          refuse,
          async accept(events, subprotocol = "") {
            if (answered) return undefined;
            settle();
            // Until the caller has its socket.
            socket.pause();
            setImmediate(() => socket.resume());
            let accepted: TransportSocket | undefined;
            subprotocolOfUpgrade = subprotocol;
            sockets.handleUpgrade(req, socket, Buffer.concat(waiting), (ws) => {
              accepted = attach(ws, socket, events, options.messageBytesMax);
            });
            return accepted;
          },
        }),
      () => refuse(500, [], ""),
    );
  });

  return {
    name: "ws",
    listen(host, port) {
      return new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
      });
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const ws of sockets.clients) ws.terminate();
      for (const socket of upgrading) socket.destroy();
      server.closeAllConnections();
      await closed;
    },
  };
}

function run(handler: () => void | Promise<void>, onError: () => void): void {
  try {
    const running = handler();
    if (running) running.catch(onError);
  } catch {
    onError();
  }
}

function headOf(req: IncomingMessage, signal: AbortSignal): RequestHead {
  const url = req.url ?? "/";
  const mark = url.indexOf("?");
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const name = (req.rawHeaders[i] ?? "").toLowerCase();
    const value = req.rawHeaders[i + 1] ?? "";
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return {
    method: req.method ?? "GET",
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? "" : url.slice(mark + 1),
    headers,
    remoteAddress: req.socket.remoteAddress ?? "",
    signal,
  };
}

function attach(ws: WebSocket, socket: Socket, events: SocketEvents, messageBytesMax: number): TransportSocket {
  let violation: "too_big" | "bad_encoding" | "protocol" | undefined;
  let closing = false;

  socket.setNoDelay(true);
  socket.on("drain", () => events.onDrain());
  ws.on("message", (data: Buffer, isBinary: boolean) => {
    if (closing) return;
    events.onFrame();
    if (data.byteLength > messageBytesMax) events.onOversized();
    else if (isBinary) events.onBinary(new Uint8Array(data));
    else events.onText(data.toString("utf8"));
  });
  ws.on("ping", () => events.onFrame());
  ws.on("pong", (payload: Buffer) => {
    events.onFrame();
    if (!closing) events.onPong(payload.toString("utf8"));
  });
  ws.on("error", (error: Error & { code?: string }) => {
    if (error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") violation = "too_big";
    else if (error.code === "WS_ERR_INVALID_UTF8") violation = "bad_encoding";
    else if (error.code?.startsWith("WS_ERR_")) violation = "protocol";
  });
  ws.on("close", (code: number, reason: Buffer) => {
    closing = true;
    events.onEnd(endOf(code, reason.toString("utf8"), violation));
  });

  return {
    sendText(text) {
      if (!closing && ws.bufferedAmount < socketBacklogBytesMax) ws.send(text, { binary: false });
    },
    sendBinary(bytes) {
      if (!closing && ws.bufferedAmount < socketBacklogBytesMax) ws.send(bytes, { binary: true });
    },
    unsentBytes: () => (closing ? 0 : ws.bufferedAmount),
    ping(payload) {
      if (!closing) ws.ping(payload);
    },
    batch(write) {
      socket.cork();
      try {
        write();
      } finally {
        socket.uncork();
      }
    },
    close(code, reason) {
      if (closing) return;
      closing = true;
      ws.close(code, reason);
    },
    terminate() {
      if (closing && ws.readyState === ws.CLOSED) return;
      closing = true;
      ws.terminate();
    },
  };
}

function endOf(
  code: number,
  reason: string,
  violation: "too_big" | "bad_encoding" | "protocol" | undefined,
): SocketEnd {
  if (violation) return { kind: "violation", violation };
  return code === 1006 ? { kind: "lost" } : { kind: "closed", code, reason };
}

class NodeResponse implements HttpResponse {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #requestBody: BodyQueue;

  constructor(req: IncomingMessage, res: ServerResponse, requestBody: BodyQueue) {
    this.#req = req;
    this.#res = res;
    this.#requestBody = requestBody;
  }

  send(status: number, headers: ResponseHeaders, body: Uint8Array | string = ""): void {
    const [res, req] = [this.#res, this.#req];
    if (res.destroyed || res.writableEnded || res.headersSent) return;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const bodyless = isBodyless(req.method ?? "", status);
    this.#head(status, headers, bodyless ? lengthOfNoBody(status, headers, bytes.byteLength) : bytes.byteLength);
    res.end(bodyless ? undefined : bytes);
  }

  stream(status: number, headers: ResponseHeaders): ResponseStream {
    const [res, req] = [this.#res, this.#req];
    const open = () => !res.destroyed && !res.writableEnded;
    if (open() && !res.headersSent) {
      const bodyless = isBodyless(req.method ?? "", status);
      this.#head(status, headers, bodyless ? lengthOfNoBody(status, headers, undefined) : undefined);
      res.flushHeaders();
    }
    return {
      write: (chunk) => !open() || res.write(chunk),
      onWritable: (listener) => void res.on("drain", listener),
      end: () => {
        if (open()) res.end();
      },
      destroy: () => void res.destroy(),
    };
  }

  #head(status: number, headers: ResponseHeaders, length: number | undefined): void {
    const res = this.#res;
    res.statusCode = status;
    if (length !== undefined) res.setHeader("content-length", String(length));
    for (const [name, value] of headers) {
      if (!["content-length", "transfer-encoding", "connection", "date"].includes(name.toLowerCase())) {
        res.appendHeader(name, value);
      }
    }
    if (!this.#requestBody.isComplete) res.setHeader("connection", "close");
  }
}
