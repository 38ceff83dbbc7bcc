/**
 * Whose address a request comes from, when proxies of our own stand in between: pure. What a proxy
 * says is believed as far as the chain of trusted ones reaches, read from the nearest backwards; the
 * first address that is none of theirs is the client's, and whatever stands before it is its own claim.
 */
import ipaddr from "ipaddr.js";

/** The proxies that are believed. */
export interface TrustedProxies {
  includes(address: string): boolean;
}

export const noProxies: TrustedProxies = { includes: () => false };

/** @param list CIDRs or addresses with commas between them @throws Error that names the entry at fault */
export function parseTrustedProxies(list: string): TrustedProxies {
  const ranges = list
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map(rangeOf);
  if (ranges.length === 0) return noProxies;
  return {
    includes(address) {
      const parsed = parse(address);
      return (
        parsed !== undefined && ranges.some(([net, bits]) => net.kind() === parsed.kind() && parsed.match(net, bits))
      );
    },
  };
}

/** A line for `TRUSTED_PROXIES` where the list is none. */
export function trustedProxiesProblems(list: string | undefined): string[] {
  try {
    parseTrustedProxies(list ?? "");
    return [];
  } catch (error) {
    return [`TRUSTED_PROXIES: ${(error as Error).message}`];
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function rangeOf(entry: string): [Address, number] {
  const [text = "", length] = entry.split("/");
  const address = parse(text);
  const bitsMax = address?.kind() === "ipv4" ? 32 : 128;
  const bits = length === undefined ? bitsMax : Number(/^\d{1,3}$/.test(length) ? length : Number.NaN);
  if (address && bits <= bitsMax) return [address, bits];
  throw new Error(`Expected CIDRs with commas between them, for example 10.0.0.0/8, got ${entry}`);
}

/** An IPv4 address within IPv6 counts as the IPv4 address that it is. */
function parse(text: string): Address | undefined {
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
  return isAddress ? ipaddr.process(text) : undefined;
}

export interface Hops {
  /** The socket's other end. */
  peer: string;
  /** `X-Forwarded-For`, as it came. */
  forwardedFor?: string | null | undefined;
  /** `Forwarded` (RFC 7239), as it came. */
  forwarded?: string | null | undefined;
}

/**
 * The client's address, in its shortest form. Where both headers are there and tell of different clients,
 * one of them went past a proxy that writes the other: then nobody is believed but the peer.
 */
export function clientAddress({ peer, forwardedFor, forwarded }: Hops, trusted: TrustedProxies): string {
  if (!trusted.includes(peer)) return shortest(peer);
  const chains = [forwardedFor?.split(","), forwarded && forsOf(forwarded)].filter((chain): chain is string[] =>
    Array.isArray(chain),
  );
  const [client = peer, other = client] = chains.map((chain) => lastUntrusted(peer, chain, trusted));
  return shortest(client === other ? client : peer);
}

function lastUntrusted(peer: string, chain: readonly string[], trusted: TrustedProxies): string {
  let nearest = peer;
  for (const entry of [...chain].reverse()) {
    const address = addressIn(entry);
    // What cannot be read hides whoever stands behind it.
    if (address === undefined) return nearest;
    if (!trusted.includes(address)) return address;
    nearest = address;
  }
  return nearest;
}

/** `for` of each hop; an empty text where one does not say. */
function forsOf(header: string): string[] {
  return header.split(",").map((hop) => /(?:^|;)\s*for="?([^";,]*)"?/i.exec(hop)?.[1] ?? "");
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const bare =
    /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? (/^[\d.]+:\d+$/.test(text) ? text.replace(/:\d+$/, "") : text);
  return parse(bare)?.toString();
}

const shortest = (address: string) => parse(address)?.toString() ?? address;

/** Whom an address belongs to: of IPv6 the /64, which is what one customer of a network gets at least. */
export function addressGroup(address: string): string {
  const parsed = parse(address);
  if (parsed?.kind() !== "ipv6") return parsed?.toString() ?? address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/64`).toString()}/64`;
}
