/** WebSockets to addresses that users give: only what the address guard lets through is dialled, and redirects are not followed. */
import { isIP } from "node:net";
import { WebSocket } from "ws";
import { AddressRefusedError, hostProblem } from "./address_guard.ts";
import { type AddressRules, guardedLookup } from "./guarded_http.ts";

export interface SocketTarget {
  /** `ws:` or `wss:` */
  url: string;
  headers: Record<string, string>;
}

const connectTimeoutMs = 3000;
const messageBytesMax = 4 * 1024 * 1024;

/** Dials. A host that is refused is told by an `error` event too. @throws AddressRefusedError for an address that is no name */
export function openGuardedSocket({ url, headers }: SocketTarget, rules: AddressRules): WebSocket {
  const hostname = new URL(url).hostname.replace(/^\[|\]$/g, "");
  // Node looks up no IP literal: it is checked here.
  const problem = !rules.allowPrivateAddresses && isIP(hostname) ? hostProblem(hostname) : undefined;
  if (problem) throw new AddressRefusedError(`Expected a public address: ${problem}`);
  return new WebSocket(url, {
    headers,
    handshakeTimeout: connectTimeoutMs,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
    ...(!rules.allowPrivateAddresses && { lookup: guardedLookup(rules) }),
  });
}
