/** Where a request's socket comes from: web standards do not say, so whoever listens notes it down. */
const peers = new WeakMap<Request, string>();

/** @param address of the socket's other end */
export function notePeer(request: Request, address: string | undefined): void {
  if (address) peers.set(request, address);
}

/** Undefined for a request that came without a socket, as in tests. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request);
}
