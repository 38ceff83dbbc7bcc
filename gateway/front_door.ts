/**
 * The public front door: whatever is not the gateway's own goes on to the api, by path and by Host
 * alike. `/internal` is nobody's business out here.
 *
 *     request ─► body taken in (bounds, time) ─► a connection of the caller's share ─► api
 *                                                       answer, a stream, or a wait ◄──┘
 */
import { Readable } from "node:stream";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Dispatcher, Pool } from "undici";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import type { Destination } from "#contracts/hosts.ts";
import { gatewayHeader, StreamGrant, streamGrantType, WaitGrant, waitGrantType } from "#contracts/internal_runs.ts";
import type { Clock } from "./calls/clock.ts";
import type { Log } from "./log.ts";
import type { RunLog } from "./streams/run_log.ts";
import type { RunStreams } from "./streams/run_streams.ts";
import {
  type HttpRequest,
  type HttpResponse,
  RequestAbortedError,
  type ResponseHeaders,
} from "./transport/transport.ts";
import { BodyIntake, BodyRefusedError, intakeLimits, type TakenBody } from "./upstream/body_intake.ts";
import { Bulkhead, bulkheadLimits, OverloadedError } from "./upstream/bulkhead.ts";
import { Relay } from "./upstream/relay.ts";
import { type Requester, requesterOf } from "./upstream/requester.ts";

export const bodyBytesMax = intakeLimits.requestBytes;
const headersTimeoutMs = 120_000;
const retryAfterS = 2;

/** RFC 9110, section 9.2.1. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

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

export interface FrontDoor {
  forward(request: HttpRequest, response: HttpResponse, destination: Destination): Promise<void>;
  /** For the gateway's figures. */
  load(): { connections: number; waitingForConnection: number; bodyBytes: number };
  close(): Promise<void>;
}

export interface FrontDoorOptions {
  apiUrl: string;
  /** Tells the scheme that clients dialled. */
  publicUrl: string;
  /** By which the api knows us, and hands us streams and waits. */
  internalSecret: string;
  streams: Pick<RunStreams, "open" | "wait">;
  runLog: Pick<RunLog, "answer">;
  clock: Clock;
  log: Log;
}

export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  const { clock, internalSecret, log, runLog, streams } = options;
  const pool = new Pool(options.apiUrl, {
    connections: bulkheadLimits.total,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: 0,
  });
  const proto = new URL(options.publicUrl).protocol.replace(":", "");
  const bulkhead = new Bulkhead(clock);
  const intake = new BodyIntake(clock);
  const relay = new Relay(clock);

  /**
   * What may change something is carried through to the head of its answer, whether or not the client is
   * still there: the api does the work anyway, and what it grants (a run that ends with its client) is ours to act on.
   */
  async function askApi(request: HttpRequest, body: TakenBody | undefined): Promise<Dispatcher.ResponseData> {
    return pool.request({
      method: request.method as Dispatcher.HttpMethod,
      path: request.query ? `${request.path}?${request.query}` : request.path,
      headers: {
        ...forwardedHeaders(request, proto),
        ...(body && { "content-length": String(body.bytes) }),
        [gatewayHeader]: internalSecret,
      },
      body: body ? Readable.from(body.chunks, { objectMode: false }) : null,
      signal: safeMethods.has(request.method) ? request.signal : null,
    });
  }

  async function passOn(request: HttpRequest, response: HttpResponse, requester: Requester): Promise<void> {
    const { signal } = request;
    const body = request.hasBody ? await intake.take(request, requester) : undefined;
    let leave: () => void = () => undefined;
    try {
      leave = await bulkhead.enter(requester, signal);
      const reply = await askApi(request, body);
      // Whoever reads an answer is told that it broke off; one that nobody reads is destroyed, which it says too.
      reply.body.on("error", () => undefined);
      body?.release();
      const grant = await grantOf(reply, streamGrantType, StreamGrant);
      if (grant) return streams.open(grant, response, signal);
      const wait = await grantOf(reply, waitGrantType, WaitGrant);
      if (wait) {
        leave();
        return await answerAfter(wait, headersOf(reply), response, signal);
      }
      const answer = { status: reply.statusCode, headers: headersOf(reply), body: reply.body };
      await relay.send(answer, { response, requester, signal }, leave);
    } finally {
      body?.release();
      leave();
    }
  }

  /** Waits without a connection, then lets the api word the answer. */
  async function answerAfter(
    granted: WaitGrant,
    headers: ResponseHeaders,
    response: HttpResponse,
    signal: AbortSignal,
  ): Promise<void> {
    for (let grant = granted; ; ) {
      const end = await streams.wait(grant, signal);
      if (signal.aborted) return;
      const answer = await runLog.answer(grant.run_id, { answer: grant.answer, is_late: end !== "happened" });
      if (answer.contentType !== waitGrantType) {
        const kept = headers.filter(([name]) => name !== "content-type");
        return response.send(answer.status, [...kept, ["content-type", answer.contentType]], answer.text);
      }
      grant = Value.Parse(WaitGrant, JSON.parse(answer.text));
    }
  }

  return {
    async forward(request, response, destination) {
      if (isInternal(request.path)) return sendError(response, "not_found");
      try {
        await passOn(request, response, requesterOf(request, destination));
      } catch (error) {
        if (request.signal.aborted || error instanceof RequestAbortedError) return;
        if (error instanceof BodyRefusedError) return sendError(response, error.code);
        if (!(error instanceof OverloadedError)) log.warn({ err: error }, "the api does not answer");
        sendError(response, "unavailable");
      }
    },
    load: () => ({
      connections: bulkhead.inUse,
      waitingForConnection: bulkhead.waiting,
      bodyBytes: intake.heldBytes,
    }),
    async close() {
      intake.close();
      bulkhead.close();
      relay.close();
      await pool.destroy();
    },
  };
}

/** The grant that an answer of this type is, or undefined for any other answer. */
async function grantOf<S extends TSchema>(reply: Dispatcher.ResponseData, type: string, schema: S) {
  if (reply.headers["content-type"] !== type) return undefined;
  return Value.Parse(schema, await reply.body.json());
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

function headersOf(reply: Dispatcher.ResponseData): ResponseHeaders {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(reply.headers)) {
    if (value === undefined || hopByHop.has(name)) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.push([name, one]);
  }
  return headers;
}

/** An error in the forms of both services: who asked may be a client of either. */
export function sendError(response: HttpResponse, code: ErrorCode, more: ResponseHeaders = []): void {
  const { status, message } = errorCatalogue[code];
  const headers: (readonly [string, string])[] = [["content-type", "application/json"], ...more];
  if (status === 503) headers.push(["retry-after", String(retryAfterS)]);
  response.send(status, headers, JSON.stringify({ error: { code, message }, detail: message }));
}
