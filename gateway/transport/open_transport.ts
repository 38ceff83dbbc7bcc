/** Picks the transport that a process is configured for and that this machine can load. */
import { clientAddress, noProxies, type TrustedProxies } from "#contracts/client_address.ts";
import type { RequestHead, Transport, TransportHandlers, TransportOptions } from "./transport.ts";

export const transportChoices = ["auto", "uws", "ws"] as const;
export type TransportChoice = (typeof transportChoices)[number];

interface OpenTransportOptions extends TransportOptions {
  choice: TransportChoice;
  /** Whose word on a caller's address is believed. Unset: nobody's. */
  trustedProxies?: TrustedProxies | undefined;
  warn: (message: string) => void;
}

/**
 * `auto` takes uWebSockets.js where its native part loads, else `ws`, and says so through `warn`.
 * @throws when `uws` is asked for and does not load
 */
export async function openTransport(given: TransportHandlers, options: OpenTransportOptions): Promise<Transport> {
  const handlers = behindProxies(given, options.trustedProxies ?? noProxies);
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

/** The same handlers, to whom a caller's address is the one that trusted proxies say, where there are any. */
function behindProxies(handlers: TransportHandlers, proxies: TrustedProxies): TransportHandlers {
  const believe = (head: RequestHead) => {
    const { remoteAddress: peer, headers } = head;
    head.remoteAddress = clientAddress(
      { peer, forwardedFor: headers["x-forwarded-for"], forwarded: headers.forwarded },
      proxies,
    );
  };
  return {
    onRequest(request, response) {
      believe(request);
      return handlers.onRequest(request, response);
    },
    onUpgrade(upgrade) {
      believe(upgrade.head);
      return handlers.onUpgrade(upgrade);
    },
  };
}
