/** Who a request comes from and what it is for, as far as fair shares go. Nothing here is proved: it only sorts. */
import { addressGroup } from "#contracts/client_address.ts";
import type { RequestHead } from "../transport/transport.ts";

export interface Requester {
  /** The caller's address; of IPv6 the /64, which one customer of a provider has. */
  address: string;
  /** Kind of route, host and credential: what one caller sends of one kind. */
  tenant: string;
  kind: RouteKind;
}

/** Kinds of route, none of which may take all connections to the api. */
export const routeKinds = ["apps", "calls", "accounts", "tax", "other"] as const;
export type RouteKind = (typeof routeKinds)[number];

const kindByPath: readonly [RegExp, RouteKind][] = [
  [/^\/v1\/apps\/[^/]+\/invoke(\/|$)/, "apps"],
  [/^\/v1\/agents\/voice(\/|$)/, "calls"],
  [/^\/v1\/(auth|orgs|api-keys|personal-access-tokens|admin)(\/|$)/, "accounts"],
  [/^\/v1\/(tax|jurisdictions|addresses|bookings|invoices|issuers|liability)(\/|$)/, "tax"],
];

/** @param isForeignHost whether every path of the request's host is the api's: an app, the collector */
export function requesterOf(head: RequestHead, isForeignHost: boolean): Requester {
  const kind = isForeignHost ? "apps" : (kindByPath.find(([path]) => path.test(head.path))?.[1] ?? "other");
  const { host = "", authorization = "", "x-api-key": apiKey = "" } = head.headers;
  return { address: addressGroup(head.remoteAddress), tenant: [kind, host, apiKey || authorization].join(" "), kind };
}
