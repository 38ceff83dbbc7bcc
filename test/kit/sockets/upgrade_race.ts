/**
 * A process of its own for `upgrades.test.ts`: callers ask to upgrade all at once, a quarter is let in
 * after a wait and the rest refused. Prints, as JSON, how many were let in and how many of those ended by
 * themselves.
 */
import { once } from "node:events";
import { WebSocket } from "ws";
import { openTransport } from "#gateway/transport/open_transport.ts";

const callers = 40;
let ended = 0;
let leaving = false;
const [choice = "uws"] = process.argv.slice(2) as ("uws" | "ws")[];

const transport = await openTransport(
  {
    onRequest: () => {},
    onUpgrade: async (upgrade) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (!upgrade.head.path.endsWith("/in")) return upgrade.refuse(503, [], "full");
      await upgrade.accept({
        onText: () => {},
        onBinary: () => {},
        onOversized: () => {},
        onFrame: () => {},
        onPong: () => {},
        onDrain: () => {},
        onEnd: () => {
          if (!leaving) ended += 1;
        },
      });
    },
  },
  { choice, messageBytesMax: 1024, warn: () => {} },
);
const port = await transport.listen("127.0.0.1", 0);

const sockets = await Promise.all(
  Array.from({ length: callers }, async (_, index) => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}/${index % 4 === 0 ? "in" : "out"}`);
    ws.on("error", () => {});
    const answer = await Promise.race([once(ws, "open").then(() => "in"), once(ws, "unexpected-response")]);
    return answer === "in" ? ws : undefined;
  }),
);
const admitted = sockets.filter((ws) => ws !== undefined);
// What comes back has passed through whatever the upgrade left behind.
await Promise.all(
  admitted.map(async (ws) => {
    if (ws.readyState !== ws.OPEN) return;
    ws.ping();
    await Promise.race([once(ws, "pong"), once(ws, "close")]);
  }),
);
process.stdout.write(JSON.stringify({ admitted: admitted.length, ended }));
leaving = true;
for (const ws of admitted) ws.terminate();
await transport.close();
process.exit(0);
