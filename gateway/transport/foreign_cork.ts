/**
 * What an upgrade on uWebSockets.js is written under: the cork of a response of our own that nobody
 * ever answers.
 *
 * `res.cork(() => res.upgrade())` looks at the answer's state when the answer is a WebSocket already.
 * Where the library reads then lies freed memory, and by what another has left there it closes the new
 * socket (uNetworking/uWebSockets issue 1928, mended upstream in July 2026; no build with the mend is
 * on npm). Without any cork nothing of that is read, but the library complains about every upgrade. Under
 * the cork of another response it does neither. Price: the head of a 101 leaves in about 25 writes.
 */

import uWS from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface ForeignCork {
  /** Runs `write` once, at once. */
  under(write: () => void): void;
  close(): void;
}

/** Opens a connection of this process to itself, over a port that is closed again. @throws when loopback cannot be had */
export async function openForeignCork(): Promise<ForeignCork> {
  const path = `/${randomBytes(16).toString("hex")}`;
  const app = uWS.App();
  let held: uWS.HttpResponse | undefined;
  const holding = new Promise<void>((resolve) => {
    app.get(path, (res) => {
      res.onAborted(() => {
        held = undefined;
      });
      held = res;
      resolve();
    });
  });
  const client = await connectTo(app);
  client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await Promise.race([
    holding,
    once(client, "close").then(() => {
      throw new Error("Cannot connect to this process itself: the connection was closed");
    }),
  ]);
  return {
    under(write) {
      // Nothing but an end of ours ends it. Should it be gone, the library's complaint is the right one.
      if (held) held.cork(write);
      else write();
    },
    close() {
      client.destroy();
      app.close();
    },
  };
}

async function connectTo(app: uWS.TemplatedApp): Promise<Socket> {
  const listening = await new Promise<uWS.us_listen_socket>((resolve, reject) => {
    app.listen("127.0.0.1", 0, (socket) => {
      if (socket) resolve(socket);
      else reject(new Error("Cannot listen on 127.0.0.1: expected a loopback address"));
    });
  });
  const client = connect(uWS.us_socket_local_port(listening as unknown as uWS.us_socket), "127.0.0.1");
  client.on("error", () => {}).unref();
  try {
    await once(client, "connect");
  } finally {
    uWS.us_listen_socket_close(listening);
  }
  return client;
}
