/** Who a request comes from and what it is for, as far as fair shares go. Nothing here is proved: it only sorts. */
import { addressGroup } from "#contracts/client_address.ts";
import { type Destination, isApisAlone } from "#contracts/hosts.ts";
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

/** Of the platform, whose paths are many. */
const kindByPath: readonly [RegExp, RouteKind][] = [
  [/^\/v1\/apps\/[^/]+\/invoke(\/|$)/, "apps"],
  [/^\/v1\/agents\/voice(\/|$)/, "calls"],
];

export function requesterOf(head: RequestHead, destination: Destination): Requester {
  const kind = kindOf(destination);
  const { host = "", authorization = "", "x-api-key": apiKey = "" } = head.headers;
  const place = destination.label ?? host;
  return { address: addressGroup(head.remoteAddress), tenant: [kind, place, apiKey || authorization].join(" "), kind };
}

function kindOf(destination: Destination): RouteKind {
  const { service, path } = destination;
  if (isApisAlone(destination)) return "apps";
  if (service === "accounts" || service === "tax") return service;
  return kindByPath.find(([pattern]) => pattern.test(path))?.[1] ?? "other";
}
