/**
 * Keeps requests to addresses that users give away from everything that is not the public
 * internet. A URL is checked twice: when it is saved (`checkPublicUrl`, a readable reason at once)
 * and when it is dialled (`guarded_http.ts` dials only addresses that pass `addressProblem`, so a name
 * that answers differently the second time gains nothing).
 *
 * Ranges: the IANA special-purpose address registries (RFC 6890) as `ipaddr.js` knows them. Allowed
 * is what they leave over: global unicast. Forms that embed an IPv4 address (mapped, NAT64, 6to4,
 * Teredo) are refused whole, whatever they embed.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export interface ResolvedAddress {
  address: string;
  family: number;
}

/** All addresses of a host name; the system's resolver by default, a scripted one in tests. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

export const resolveBySystem: Resolve = (hostname) => lookup(hostname, { all: true, verbatim: true });

/** The address or the URL leads to where no user may send us. The message says why, for the user. */
export class AddressRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AddressRefusedError";
  }
}

/** For the log of every process that was started so. */
export const privateAddressesWarning =
  "ALLOW_PRIVATE_ADDRESSES is true: requests to addresses that users give reach private networks; for development only";

/** Public by their range, and yet a cloud's own service for what runs in it: Azure's agent and DNS. */
const cloudServices = new Set(["168.63.129.16"]);

/** Global unicast of IPv6 is 2000::/3 (RFC 4291, section 2.4); the rest is unassigned or special. */
const globalUnicastIpv6 = ipaddr.parseCIDR("2000::/3");

/** Why `address` (an IP literal) must not be dialled, or undefined for a public one. */
export function addressProblem(address: string): string | undefined {
  const withoutZone = address.replace(/%.*$/, "");
  if (!ipaddr.isValid(withoutZone)) return `${address} is not an IP address`;
  const parsed = ipaddr.parse(withoutZone);
  const range = parsed.range();
  if (cloudServices.has(parsed.toString())) return `${address} is a service of the cloud that this may run in`;
  if (range !== "unicast") return `${address} is in a reserved range (${range})`;
  if (parsed.kind() === "ipv6" && !parsed.match(globalUnicastIpv6)) return `${address} is not global unicast`;
  return undefined;
}

/** Names that never lead out: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's internal. */
const privateSuffixes = ["localhost", "local", "internal", "home.arpa", "localdomain"];

/** Why a URL's host must not be dialled, as far as its text tells, or undefined. */
export function hostProblem(hostname: string): string | undefined {
  const bare = hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  if (isIP(bare)) return addressProblem(bare);
  const suffix = privateSuffixes.find((name) => bare === name || bare.endsWith(`.${name}`));
  if (suffix) return `${bare} is a private name (.${suffix})`;
  if (!bare.includes(".")) return `${bare} is not a public host name`;
  return undefined;
}

export interface UrlRules {
  /** Allowed schemes, for example `["https:"]`. */
  protocols: readonly string[];
  /** Development only: private addresses pass. */
  allowPrivateAddresses: boolean;
  resolve?: Resolve;
}

/**
 * Parses and checks a URL that a user gave, resolving its host name.
 * @throws AddressRefusedError saying what is wrong and what is expected
 */
export async function checkPublicUrl(text: string, rules: UrlRules): Promise<URL> {
  const url = parsePublicUrl(text, rules);
  if (!rules.allowPrivateAddresses) await resolvePublic(url.hostname, rules.resolve ?? resolveBySystem);
  return url;
}

/** What can be told without asking a resolver. @throws AddressRefusedError */
export function parsePublicUrl(text: string, rules: UrlRules): URL {
  if (!URL.canParse(text)) throw new AddressRefusedError("Expected an absolute URL");
  const url = new URL(text);
  if (!rules.protocols.includes(url.protocol)) {
    const expected = rules.protocols.map((protocol) => protocol.replace(":", "")).join(" or ");
    throw new AddressRefusedError(`Expected a URL with ${expected}`);
  }
  if (url.username || url.password) throw new AddressRefusedError("Expected a URL without user name and password");
  const problem = rules.allowPrivateAddresses ? undefined : hostProblem(url.hostname);
  if (problem) throw new AddressRefusedError(`Expected a public address: ${problem}`);
  return url;
}

/**
 * The addresses of `hostname`, every one of them public: one private address among public ones
 * is an attack or a mistake, and refused as a whole.
 * @throws AddressRefusedError when the name does not resolve or leads to a reserved address
 */
export async function resolvePublic(hostname: string, resolve: Resolve): Promise<ResolvedAddress[]> {
  const bare = hostname.replace(/^\[|\]$/g, "");
  const byText = hostProblem(bare);
  if (byText) throw new AddressRefusedError(`Expected a public address: ${byText}`);
  const family = isIP(bare);
  if (family) return [{ address: bare, family }];
  let addresses: ResolvedAddress[];
  try {
    addresses = await resolve(bare);
  } catch {
    addresses = [];
  }
  if (addresses.length === 0) throw new AddressRefusedError(`Expected a public address: ${bare} does not resolve`);
  for (const { address } of addresses) {
    const problem = addressProblem(address);
    if (problem) throw new AddressRefusedError(`Expected a public address: ${bare} resolves to ${problem}`);
  }
  return addresses;
}
