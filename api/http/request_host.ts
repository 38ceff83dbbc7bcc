/** The host that a request names, and a request by path form as the one that it stands for. */
import type { Destination } from "#contracts/hosts.ts";
import { notePeer, peerOf } from "./peer_address.ts";

/** As the client named it, port included. */
export function hostOf(request: Request): string {
  return request.headers.get("host") ?? new URL(request.url).host;
}

/** `/-/apps/desk/v1/runs` as `/v1/runs` at the app's host; any other request as it is. */
export function atDestination(request: Request, { label, path }: Destination, appDomain: string): Request {
  const url = new URL(request.url);
  if (path === url.pathname) return request;
  url.pathname = path;
  const inner = new Request(url, request);
  if (label !== undefined) inner.headers.set("host", `${label}.${appDomain}`);
  notePeer(inner, peerOf(request));
  return inner;
}
