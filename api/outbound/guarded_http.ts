/**
 * HTTP to addresses that users give: every connection is made only after all addresses of its host
 * passed the guard, and to exactly those addresses. Redirects are not followed, answers are read up to
 * a bound, every phase has a time-out.
 */
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, request } from "undici";
import { AddressRefusedError, hostProblem, type Resolve, resolveBySystem, resolvePublic } from "./address_guard.ts";

/** Which addresses may be dialled. */
export interface AddressRules {
  /** Development only: private addresses pass. */
  allowPrivateAddresses: boolean;
  resolve?: Resolve;
}

export interface GuardedHttpOptions extends AddressRules {
  connectTimeoutMs?: number;
  headersTimeoutMs?: number;
  /** Silence between two pieces of the body. */
  bodyTimeoutMs?: number;
}

export interface GuardedRequest {
  method: Dispatcher.HttpMethod;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
  /** The answer is cut here. */
  responseBytesMax: number;
}

export interface GuardedResponse {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** More came than `responseBytesMax`; the rest was thrown away. */
  truncated: boolean;
}

/** A client with its own connection pool. One a process is enough. */
export interface GuardedHttp {
  /** @throws AddressRefusedError, or undici's errors for what went wrong on the way */
  send(url: URL | string, options: GuardedRequest): Promise<GuardedResponse>;
  /** For clients that take a dispatcher of their own (SDKs): the same guard. */
  dispatcher: Dispatcher;
  /** For sockets of other protocols: the same guard. */
  guard: AddressRules;
  close(): Promise<void>;
}

export function createGuardedHttp(options: GuardedHttpOptions): GuardedHttp {
  const dispatcher = new Agent({
    connect: guardedConnector(options),
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    bodyTimeout: options.bodyTimeoutMs ?? 10_000,
    maxHeaderSize: 64 * 1024,
  });
  return {
    dispatcher,
    guard: options,
    async send(url, { method, headers, body, signal, responseBytesMax }) {
      const response = await request(url, {
        method,
        dispatcher,
        headers: headers ?? {},
        body: body ?? null,
        signal: signal ?? null,
      });
      const { bytes, truncated } = await readUpTo(response.body, responseBytesMax);
      return { status: response.statusCode, headers: flat(response.headers), body: bytes, truncated };
    },
    close: () => dispatcher.destroy(),
  };
}

/**
 * A connector whose sockets reach public addresses only. The host's text is checked here, because
 * Node looks up no IP literal; a name's addresses are checked in the look-up whose very result is dialled.
 */
function guardedConnector(options: GuardedHttpOptions): buildConnector.connector {
  const timeout = options.connectTimeoutMs ?? 5000;
  if (options.allowPrivateAddresses) return buildConnector({ timeout });
  const connect = buildConnector({ timeout, lookup: guardedLookup(options) });
  return (target, callback) => {
    const hostname = target.hostname.replace(/^\[|\]$/g, "");
    const problem = isIP(hostname) ? hostProblem(hostname) : undefined;
    if (problem) callback(new AddressRefusedError(`Expected a public address: ${problem}`), null);
    else connect(target, callback);
  };
}

/** A look-up for `net.connect` that finds public addresses alone, and gives out exactly those that it checked. */
export function guardedLookup({ resolve = resolveBySystem }: Pick<AddressRules, "resolve">): LookupFunction {
  return (hostname, lookupOptions, callback) => {
    resolvePublic(hostname, resolve).then(
      (addresses) => {
        const [first] = addresses;
        if (lookupOptions.all) callback(null, addresses);
        else callback(null, first?.address ?? "", first?.family ?? 0);
      },
      (error) => callback(error, ""),
    );
  };
}

async function readUpTo(body: Dispatcher.ResponseData["body"], bytesMax: number) {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    // Leaving the loop destroys the body, and with it the connection that would go on sending.
    if (length > bytesMax) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, bytesMax), truncated: length > bytesMax };
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value ?? "")]));
}
