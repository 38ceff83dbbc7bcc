/**
 * The transport on uWebSockets.js, with `foreign_cork.ts` all that imports it.
 *
 * What it cannot do: a text message that is not UTF-8, and one beyond `oversizeFactor` times the
 * bound, are cut by the library itself (the peer sees 1006, we see a `violation`). A close frame
 * whose code the library holds for invalid (1012…1014, 3000…3999) cannot be told from a lost link.
 */
import uWS from "uWebSockets.js";
import { BodyQueue } from "./body_queue.ts";
import { type ForeignCork, openForeignCork } from "./foreign_cork.ts";
import { isFramedOnce, isPlainUpgrade } from "./request_framing.ts";
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

/** The library copies the fields of what it is given, hence the one field that holds what is shared. */
interface Connection {
  link: { events: SocketEvents; socket?: UwsSocket };
}

/** Above the gateway's own 60 s, so that it only ever reaps sockets that linger after `close`. */
const idleTimeoutS = 120;

/**
 * What fits into the library's cork buffer of 16 KiB together with its chunk's head. Of a larger write it
 * loses the body, and keeps the head, when the connection comes to stand between the two
 * (github.com/uNetworking/uWebSockets.js/issues/1249).
 */
const corkedBytesMax = 16 * 1024 - 64;

/** Without it two processes could share a port by accident (SO_REUSEPORT). */
const exclusivePort = 1;

export function createUwsTransport(handlers: TransportHandlers, options: TransportOptions): Transport {
  const app = uWS.App();
  const decoder = new TextDecoder();
  let cork: ForeignCork | undefined;

  app.ws<Connection>("/*", {
    compression: uWS.DISABLED,
    maxPayloadLength: options.messageBytesMax * oversizeFactor,
    maxBackpressure: socketBacklogBytesMax,
    idleTimeout: idleTimeoutS,
    sendPingsAutomatically: false,

    upgrade(res, req, context) {
      const abort = new AbortController();
      let answered = false;
      res.onAborted(() => abort.abort());
      const head = headOf(req, res, abort.signal);
      const key = req.getHeader("sec-websocket-key");
      const connection = req.getHeader("connection");
      const extensions = req.getHeader("sec-websocket-extensions");

      const refuse = (status: number, headers: ResponseHeaders, body: string) => {
        if (answered || abort.signal.aborted) return;
        answered = true;
        res.cork(() => {
          writeHead(res, status, headers);
          res.end(body);
        });
      };
      // What has five letters the library takes for "close", and then it does not survive the upgrade.
      if (connection.length === 5 || !isFramedOnce(head.headers) || !isPlainUpgrade(head.headers)) {
        return refuseAndClose(res, abort.signal);
      }
      if (req.getHeader("sec-websocket-version") !== "13") {
        return refuse(426, [["sec-websocket-version", "13"]], "");
      }
      run(
        () =>
          handlers.onUpgrade({
            head,
            refuse,
            async accept(events, subprotocol = "") {
              if (answered) return undefined;
              answered = true;
              // Inside of another connection's callback the library would take the new socket for that one's.
              await new Promise((resolve) => setImmediate(resolve));
              if (abort.signal.aborted) return undefined;
              const link: Connection["link"] = { events };
              const upgrade = () => res.upgrade<Connection>({ link }, key, subprotocol, extensions, context);
              if (cork) cork.under(upgrade);
              return link.socket;
            },
          }),
        () => refuse(500, [], ""),
      );
    },

    open(ws) {
      ws.getUserData().link.socket = new UwsSocket(ws);
    },
    message(ws, message, isBinary) {
      const { events, socket } = ws.getUserData().link;
      if (socket?.isClosing) return;
      events.onFrame();
      if (message.byteLength > options.messageBytesMax) return events.onOversized();
      if (isBinary) events.onBinary(new Uint8Array(message.slice(0)));
      else events.onText(decoder.decode(message));
    },
    ping: (ws) => ws.getUserData().link.events.onFrame(),
    pong(ws, message) {
      const { events, socket } = ws.getUserData().link;
      events.onFrame();
      if (!socket?.isClosing) events.onPong(decoder.decode(message));
    },
    drain: (ws) => ws.getUserData().link.events.onDrain(),
    close(ws, code, message) {
      const { events, socket } = ws.getUserData().link;
      socket?.forget();
      events.onEnd(endOf(code, decoder.decode(message)));
    },
  });

  app.any("/*", (res, req) => {
    const abort = new AbortController();
    let gone = false;
    const head = headOf(req, res, abort.signal);
    if (!isFramedOnce(head.headers)) {
      res.onAborted(() => abort.abort());
      return refuseAndClose(res, abort.signal);
    }
    const flow = {
      pause: () => !gone && res.pause(),
      resume: () => !gone && res.resume(),
    };
    const body = new BodyQueue(flow);
    res.onAborted(() => {
      gone = true;
      abort.abort();
      body.abort();
    });
    const hasBody = (head.headers["content-length"] ?? "0") !== "0" || "transfer-encoding" in head.headers;
    if (hasBody) res.onData((chunk, isLast) => body.push(new Uint8Array(chunk.slice(0)), isLast));
    else body.push(new Uint8Array(), true);

    const response = new UwsResponse(res, head, {
      isGone: () => gone,
      finish: () => {
        gone = true;
      },
      isReceiving: () => !body.isComplete,
      discardBody: () => discardWithin(body, head),
    });
    run(
      () => handlers.onRequest({ ...head, hasBody, body: () => body }, response),
      () => response.send(500, []),
    );
  });

  return {
    name: "uws",
    async listen(host, port) {
      cork = await openForeignCork();
      return await new Promise((resolve, reject) => {
        // The typings lack this overload: (host, port, options, callback).
        const listen = app.listen as unknown as (
          host: string,
          port: number,
          options: number,
          listening: (socket: uWS.us_listen_socket | false) => void,
        ) => void;
        listen.call(app, host, port, exclusivePort, (socket) => {
          if (socket) resolve(uWS.us_socket_local_port(socket as uWS.us_socket));
          else reject(new Error(`Cannot listen on ${host}:${port}: the address is in use or not ours`));
        });
      });
    },
    async close() {
      app.close();
      cork?.close();
    },
  };
}

/**
 * A client that is still sending its body does not see an answer before a connection that closes: the rest is
 * taken first, within these bounds.
 */
const discardedBytesMax = 32 * 1024 * 1024;
const discardMsMax = 10_000;

async function discardWithin(body: BodyQueue, { headers }: RequestHead): Promise<void> {
  if (Number(headers["content-length"] ?? 0) > discardedBytesMax) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, discardMsMax);
  });
  await Promise.race([body.discard(discardedBytesMax), late]);
  clearTimeout(timer);
}

/** Runs a handler that may be asynchronous; whatever it throws ends in `onError`. */
function run(handler: () => void | Promise<void>, onError: () => void): void {
  try {
    const running = handler();
    if (running) running.catch(onError);
  } catch {
    onError();
  }
}

/** Not within the request's own callback: the library would go on with what follows, as if the connection stayed. */
function refuseAndClose(res: uWS.HttpResponse, signal: AbortSignal): void {
  setImmediate(() => {
    if (signal.aborted) return;
    res.cork(() => {
      writeHead(res, 400, []);
      res.end("", true);
    });
  });
}

function headOf(req: uWS.HttpRequest, res: uWS.HttpResponse, signal: AbortSignal): RequestHead {
  const headers: Record<string, string> = Object.create(null);
  req.forEach((name, value) => {
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}${name === "cookie" ? "; " : ", "}${value}`;
  });
  return {
    method: req.getCaseSensitiveMethod().toUpperCase(),
    path: req.getUrl(),
    query: req.getQuery() ?? "",
    headers,
    remoteAddress: Buffer.from(res.getRemoteAddressAsText()).toString("latin1"),
    signal,
  };
}

function endOf(code: number, message: string): SocketEnd {
  if (code !== 1006) return { kind: "closed", code, reason: message };
  if (message === "Received too big message") return { kind: "violation", violation: "too_big" };
  if (message === "Received invalid UTF-8") return { kind: "violation", violation: "bad_encoding" };
  return { kind: "lost" };
}

function writeHead(res: uWS.HttpResponse, status: number, headers: ResponseHeaders): void {
  res.writeStatus(statusLine(status));
  for (const [name, value] of headers) {
    // Written by the library itself.
    if (!["content-length", "transfer-encoding", "connection", "date"].includes(name.toLowerCase())) {
      res.writeHeader(name, value);
    }
  }
}

interface Exchange {
  isGone(): boolean;
  finish(): void;
  /** The request's body has not arrived as a whole. */
  isReceiving(): boolean;
  /** Takes the rest of it; in vain when it is too much. */
  discardBody(): Promise<void>;
}

class UwsResponse implements HttpResponse {
  readonly #res: uWS.HttpResponse;
  readonly #head: RequestHead;
  readonly #exchange: Exchange;
  #isAnswered = false;

  constructor(res: uWS.HttpResponse, head: RequestHead, exchange: Exchange) {
    this.#res = res;
    this.#head = head;
    this.#exchange = exchange;
  }

  send(status: number, headers: ResponseHeaders, body: Uint8Array | string = ""): void {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    if (isBodyless(this.#head.method, status)) this.#sendHead(status, headers, bytes);
    else {
      this.#answer((close) => {
        writeHead(this.#res, status, headers);
        this.#res.end(body, close);
      });
    }
  }

  /** @param bytes of the body that an answer to HEAD leaves out, where they are known */
  #sendHead(status: number, headers: ResponseHeaders, bytes?: number): void {
    const length = lengthOfNoBody(status, headers, bytes);
    this.#answer(() => {
      writeHead(this.#res, status, headers);
      if (length !== undefined) this.#res.writeHeader("Content-Length", String(length));
      // Without arguments: of any first one, `undefined` too, the library makes a length, and then it holds the
      // answer for unfinished and cuts the connection at the next request. So it cannot be told to close here;
      // what is left of a request's body it drops, and its idle timeout ends a connection that sends no more.
      this.#res.endWithoutBody();
    });
  }

  /** Writes the end of the answer, once the request's body is out of the way or given up. */
  #answer(write: (close: boolean) => void): void {
    if (this.#exchange.isGone() || this.#isAnswered) return;
    this.#isAnswered = true;
    const end = () => {
      if (this.#exchange.isGone()) return;
      const close = this.#exchange.isReceiving();
      this.#exchange.finish();
      this.#res.cork(() => write(close));
    };
    if (this.#exchange.isReceiving()) void this.#exchange.discardBody().then(end, end);
    else end();
  }

  stream(status: number, headers: ResponseHeaders): ResponseStream {
    const [res, exchange, head] = [this.#res, this.#exchange, this.#head];
    const bodyless = isBodyless(head.method, status);
    if (!exchange.isGone() && !bodyless) res.cork(() => writeHead(res, status, headers));
    return {
      write(chunk) {
        if (exchange.isGone() || bodyless || chunk.byteLength === 0) return true;
        let writable = true;
        for (let at = 0; at < chunk.byteLength; at += corkedBytesMax) {
          const piece = chunk.subarray(at, at + corkedBytesMax);
          res.cork(() => {
            writable = res.write(piece);
          });
        }
        return writable;
      },
      onWritable(listener) {
        if (exchange.isGone() || bodyless) return;
        res.onWritable(() => {
          // The library leaves the rest of the last write to us, and an empty cork sends it.
          res.cork(() => undefined);
          listener();
          return true;
        });
      },
      end: () => {
        if (bodyless) this.#sendHead(status, headers);
        else this.#answer((close) => res.end(undefined, close));
      },
      destroy() {
        if (exchange.isGone()) return;
        exchange.finish();
        res.close();
      },
    };
  }
}

class UwsSocket implements TransportSocket {
  readonly #ws: uWS.WebSocket<Connection>;
  /** Accepts nothing more from us; the library invalidates `ws` when it is `gone`. */
  #closing = false;
  #gone = false;

  constructor(ws: uWS.WebSocket<Connection>) {
    this.#ws = ws;
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  forget(): void {
    this.#closing = true;
    this.#gone = true;
  }

  sendText(text: string): void {
    if (!this.#closing) this.#ws.send(text, false);
  }

  sendBinary(bytes: Uint8Array): void {
    if (!this.#closing) this.#ws.send(bytes, true);
  }

  unsentBytes(): number {
    return this.#closing ? 0 : this.#ws.getBufferedAmount();
  }

  ping(payload?: string): void {
    if (!this.#closing) this.#ws.ping(payload);
  }

  batch(write: () => void): void {
    if (this.#closing) write();
    else this.#ws.cork(write);
  }

  close(code: number, reason: string): void {
    this.#finish(() => this.#ws.end(code, reason));
  }

  terminate(): void {
    this.#finish(() => this.#ws.close());
  }

  /** `onEnd` runs inside of `end` and `close`, and the caller is in the middle of its own work: a turn later. */
  #finish(close: () => void): void {
    if (this.#closing) return;
    this.#closing = true;
    queueMicrotask(() => {
      if (!this.#gone) close();
    });
  }
}
