/** Serves a `(Request) => Response` on Node's HTTP server. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { notePeer } from "#http/peer_address.ts";
import type { Fetch } from "#http/service.ts";

export interface HttpListener {
  url: string;
  port: number;
  /** Takes no more requests, lets those under way finish for `graceMs`, then cuts them. */
  close(graceMs?: number): Promise<void>;
}

/** @throws Error EADDRINUSE when the port is taken */
export async function listen(fetch: Fetch, address: { host: string; port: number }): Promise<HttpListener> {
  const noting = (request: Request, { incoming }: { incoming: { socket: { remoteAddress?: string | undefined } } }) => {
    notePeer(request, incoming.socket.remoteAddress);
    return fetch(request);
  };
  const server = createAdaptorServer({ fetch: noting as Fetch, overrideGlobalObjects: false }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}`,
    port,
    close: (graceMs = 5000) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}
