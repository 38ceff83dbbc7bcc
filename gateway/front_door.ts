/**
 * The public front door: whatever is not the gateway's own goes on to the api, by path and by Host
 * alike, streamed both ways. `/internal` is nobody's business out here.
 */
import { Readable } from "node:stream";
import { Value } from "@sinclair/typebox/value";
import { type Dispatcher, Pool } from "undici";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import { gatewayHeader, StreamGrant, streamGrantType } from "#contracts/internal_runs.ts";
import type { Log } from "./log.ts";
import type { RunStreams } from "./streams/run_streams.ts";
import type { HttpRequest, HttpResponse, ResponseHeaders } from "./transport/transport.ts";

/** Uploads (datasets, documents) included; the api's routes have tighter bounds of their own. */
export const bodyBytesMax = 32 * 1024 * 1024;
const connectionsMax = 128;
const headersTimeoutMs = 120_000;
const retryAfterS = 2;

/** RFC 9110, section 7.6.1, and what the next hop writes for itself. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
]);

/** What a client may not claim: who it is for the next hop, and that it is a gateway. */
function isClaim(name: string): boolean {
  return name === "forwarded" || name.startsWith("x-forwarded-") || name === gatewayHeader;
}

class BodyTooLargeError extends Error {}

export interface FrontDoor {
  forward(request: HttpRequest, response: HttpResponse): Promise<void>;
  close(): Promise<void>;
}

export interface FrontDoorOptions {
  apiUrl: string;
  /** Tells the scheme that clients dialled. */
  publicUrl: string;
  /** By which the api knows us, and hands us streams. */
  internalSecret: string;
  streams: Pick<RunStreams, "open">;
  log: Log;
}

export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  const pool = new Pool(options.apiUrl, {
    connections: connectionsMax,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: 0,
  });
  const proto = new URL(options.publicUrl).protocol.replace(":", "");

  return {
    async forward(request, response) {
      if (isInternal(request.path)) return sendError(response, "not_found");
      if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax)
        return sendError(response, "payload_too_large");
      let reply: Dispatcher.ResponseData;
      try {
        reply = await pool.request({
          method: request.method as Dispatcher.HttpMethod,
          path: request.query ? `${request.path}?${request.query}` : request.path,
          headers: { ...forwardedHeaders(request, proto), [gatewayHeader]: options.internalSecret },
          body: request.hasBody ? Readable.from(bounded(request.body())) : null,
          signal: request.signal,
        });
      } catch (error) {
        if (request.signal.aborted) return;
        if (error instanceof BodyTooLargeError) return sendError(response, "payload_too_large");
        options.log.warn({ err: error }, "the api does not answer");
        return sendError(response, "unavailable");
      }
      const grant = await grantOf(reply);
      if (grant) options.streams.open(grant, response, request.signal);
      else await relay(reply, response, request.signal);
    },
    close: () => pool.destroy(),
  };
}

/** The stream that the api wants us to write, or undefined for an answer that is relayed. */
async function grantOf(reply: Dispatcher.ResponseData): Promise<StreamGrant | undefined> {
  if (reply.headers["content-type"] !== streamGrantType) return undefined;
  return Value.Parse(StreamGrant, await reply.body.json());
}

/** Whether a path reaches `/internal`, however it is spelled. Pure. */
export function isInternal(path: string): boolean {
  let decoded = path;
  try {
    // Twice, because a next hop might decode once more.
    decoded = decodeURIComponent(decodeURIComponent(path));
  } catch {
    // Not decodable: compared as it is.
  }
  const segments: string[] = [];
  for (const segment of decoded.toLowerCase().split(/[/\\]+/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments[0] === "internal";
}

/** The request's headers without hop-by-hop ones and claims, and who it really comes from. */
function forwardedHeaders(request: HttpRequest, proto: string): Record<string, string> {
  const dropped = new Set(hopByHop);
  for (const name of (request.headers.connection ?? "").split(",")) dropped.add(name.trim().toLowerCase());
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (!dropped.has(name) && !isClaim(name)) headers[name] = value;
  }
  headers["x-forwarded-for"] = request.remoteAddress;
  headers["x-forwarded-proto"] = proto;
  if (request.headers.host) headers["x-forwarded-host"] = request.headers.host;
  return headers;
}

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw new BodyTooLargeError(`Expected at most ${bodyBytesMax} bytes`);
    yield chunk;
  }
}

/** Streams the api's answer at the pace at which the client takes it. */
async function relay(reply: Dispatcher.ResponseData, response: HttpResponse, signal: AbortSignal): Promise<void> {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(reply.headers)) {
    if (value === undefined || hopByHop.has(name)) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.push([name, one]);
  }
  const stream = response.stream(reply.statusCode, headers);
  let wake: (() => void) | undefined;
  stream.onWritable(() => wake?.());
  const onAbort = () => {
    reply.body.destroy();
    wake?.();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for await (const chunk of reply.body as AsyncIterable<Buffer>) {
      if (signal.aborted) return;
      if (stream.write(chunk)) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (signal.aborted) resolve();
      });
    }
    stream.end();
  } catch {
    // The api broke off: the client must see that the answer is incomplete.
    stream.destroy();
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** The platform's error envelope. */
export function sendError(response: HttpResponse, code: ErrorCode): void {
  const { status, message } = errorCatalogue[code];
  const headers: [string, string][] = [["content-type", "application/json"]];
  if (status === 503) headers.push(["retry-after", String(retryAfterS)]);
  response.send(status, headers as ResponseHeaders, JSON.stringify({ error: { code, message } }));
}
