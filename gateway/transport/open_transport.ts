/** Picks the transport that a process is configured for and that this machine can load. */
import type { Transport, TransportHandlers, TransportOptions } from "./transport.ts";

export const transportChoices = ["auto", "uws", "ws"] as const;
export type TransportChoice = (typeof transportChoices)[number];

/**
 * `auto` takes uWebSockets.js where its native part loads, else `ws`, and says so through `warn`.
 * @throws when `uws` is asked for and does not load
 */
export async function openTransport(
  handlers: TransportHandlers,
  options: TransportOptions & { choice: TransportChoice; warn: (message: string) => void },
): Promise<Transport> {
  if (options.choice !== "ws") {
    try {
      const { createUwsTransport } = await import("./uws_transport.ts");
      return createUwsTransport(handlers, options);
    } catch (error) {
      if (options.choice === "uws") throw error;
      options.warn(
        "uWebSockets.js does not load on this machine: the ws transport takes over (same protocol, fewer calls a core)",
      );
    }
  }
  const { createWsTransport } = await import("./ws_transport.ts");
  return createWsTransport(handlers, options);
}
