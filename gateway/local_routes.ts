/** What the gateway answers itself: health, and the pages for people. */
import { pageFor } from "./pages/pages.ts";

export interface Page {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array | string;
}

export interface OwnPagesDeps {
  ifNoneMatch: string | undefined;
  /** Addresses that the page may open sockets to. */
  connectTo: readonly string[];
  /** Undefined: there are no rooms here. */
  liveKitUrl: string | undefined;
  isDraining(): boolean;
  isReady(): Promise<boolean>;
}

/** The page at `path`, or undefined when it is not the gateway's. */
export async function ownPage(path: string, deps: OwnPagesDeps): Promise<Page | undefined> {
  if (path === "/healthz") return json(200, { status: "ok" });
  if (path === "/readyz") {
    if (deps.isDraining()) return json(503, { status: "draining" });
    return (await deps.isReady()) ? json(200, { status: "ready" }) : json(503, { status: "unavailable" });
  }
  return pageFor(path, deps);
}

function json(status: number, body: object): Page {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return { status, headers, body: JSON.stringify(body) };
}
