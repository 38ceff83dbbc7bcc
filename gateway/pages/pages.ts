/**
 * The pages that the gateway serves itself: `/talk` and `/runs` and their assets, read once when the
 * process starts. A path is looked up, never joined, so nothing outside the folders can be reached.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";

export interface Page {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

export interface PageOptions {
  /** The request's `If-None-Match`; the answer is 304 when it names the current content. */
  ifNoneMatch?: string | undefined;
  /** `http(s)://` addresses whose sockets the page may open besides its own origin's. */
  connectTo?: readonly string[];
  /** `ws(s)://` address of the LiveKit server; undefined: the page offers no rooms. */
  liveKitUrl?: string | undefined;
}

interface Asset {
  type: string;
  etag: string;
  body: Uint8Array;
}

/** What a page needs of a package: served from here, as it came. */
const packaged: Readonly<Record<string, string>> = {
  "/talk/livekit-client.js": import.meta.resolve("livekit-client"),
};

/** Each is a folder here and a path there. */
const pages = ["talk", "runs"] as const;

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

const assets = readAssets();
const nothing = new Uint8Array(0);

/**
 * The answer for `GET path` (no query), or undefined when the path is none of the pages'.
 * An unknown path below one of them is a 404 of ours.
 */
export function pageFor(path: string, options: PageOptions = {}): Page | undefined {
  if (!pages.some((page) => path === `/${page}` || path.startsWith(`/${page}/`))) return undefined;
  const asset = path === "/talk/offers.json" ? offers(options) : assets.get(path);
  if (!asset) {
    const body = new TextEncoder().encode("Not Found\n");
    return { status: 404, headers: { ...commonHeaders, "content-type": "text/plain; charset=utf-8" }, body };
  }
  const headers: Record<string, string> = {
    ...commonHeaders,
    "content-type": asset.type,
    etag: asset.etag,
    // Always asked again, answered 304 when unchanged: a new version shows at once.
    "cache-control": "no-cache",
    "content-security-policy": contentSecurityPolicy(options),
  };
  if (names(options.ifNoneMatch, asset.etag)) return { status: 304, headers, body: nothing };
  return { status: 200, headers, body: asset.body };
}

const commonHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "microphone=(self), camera=(), geolocation=()",
};

/** What this house has for callers, which the page asks before it offers it. */
function offers({ liveKitUrl }: PageOptions): Asset {
  return assetOf("application/json", new TextEncoder().encode(JSON.stringify({ rooms: liveKitUrl !== undefined })));
}

/** Nothing from elsewhere, nothing inline; sockets to our own origin, `connectTo` and LiveKit alone. */
function contentSecurityPolicy({ connectTo = [], liveKitUrl }: PageOptions): string {
  const addresses = liveKitUrl === undefined ? connectTo : [...connectTo, liveKitUrl.replace(/^ws/, "http")];
  const sockets = addresses.flatMap((address) => {
    const { protocol, host } = new URL(address);
    return [`${protocol}//${host}`, `${protocol === "https:" ? "wss" : "ws"}://${host}`];
  });
  const connect = ["'self'", ...new Set(sockets)].join(" ");
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src ${connect}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** Whether an `If-None-Match` list holds this entity tag (RFC 9110, 13.1.2). */
function names(ifNoneMatch: string | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag || tag.trim() === "*");
}

function assetOf(type: string, body: Uint8Array): Asset {
  return { type, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`, body };
}

function readAssets(): ReadonlyMap<string, Asset> {
  const read = new Map<string, Asset>();
  for (const [path, module] of Object.entries(packaged)) {
    read.set(path, assetOf(contentTypes[".js"] ?? "", readFileSync(new URL(module))));
  }
  for (const page of pages) {
    const folder = new URL(`./${page}/`, import.meta.url);
    for (const name of readdirSync(folder)) {
      const type = contentTypes[extname(name)];
      if (!type) continue;
      const asset = assetOf(type, readFileSync(new URL(name, folder)));
      read.set(name === "index.html" ? `/${page}` : `/${page}/${name}`, asset);
      if (name === "index.html") read.set(`/${page}/`, asset);
    }
  }
  return read;
}
