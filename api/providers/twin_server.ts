/** What servers that stand in for vendors share: a life on loopback, sockets that can be refused, tones. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** How a twin takes requests to become a WebSocket. */
export interface TwinSockets {
  /** Why this request gets no socket; undefined when it gets one. */
  refusal(request: IncomingMessage): { status: number; body: string } | undefined;
  serve(socket: WebSocket, request: IncomingMessage): void;
}

export interface TwinServer {
  /** `http://127.0.0.1:…` */
  url: string;
  /** Cuts whoever is connected. */
  close(): Promise<void>;
}

/** Listens on a free port of loopback. */
export async function startTwinServer(answer: RequestListener, sockets?: TwinSockets): Promise<TwinServer> {
  const server = createServer(answer);
  const opened = new WebSocketServer({ noServer: true });
  if (sockets)
    server.on("upgrade", (request, socket, head) => {
      // Who is refused may be gone before it has read why.
      socket.on("error", () => {});
      const refusal = sockets.refusal(request);
      if (!refusal) return opened.handleUpgrade(request, socket, head, (made) => sockets.serve(made, request));
      const { status, body } = refusal;
      socket.end(
        `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const client of opened.clients) client.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Where a request goes, whatever the server's own name is. */
export const targetOf = (request: IncomingMessage) => new URL(request.url ?? "", "http://twin");

/** Begins to answer, then the connection breaks; what was written leaves before. */
export function breakOff(response: ServerResponse, beginning: string | Uint8Array): void {
  response.write(beginning, () => setImmediate(() => response.destroy()));
}

/** 440 Hz as 16-bit mono samples. */
export function toneOf(durationMs: number, rateHz: number): Buffer {
  const sound = Buffer.alloc(Math.round((durationMs * rateHz) / 1000) * 2);
  for (let at = 0; at < sound.length; at += 2) {
    sound.writeInt16LE(Math.round(4000 * Math.sin((Math.PI * 440 * at) / rateHz)), at);
  }
  return sound;
}
