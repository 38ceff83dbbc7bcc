/**
 * Tools of Model Context Protocol servers: Streamable HTTP, with SSE for older servers. The SDK is
 * loaded on first use. Every connection passes the address guard; redirects are not followed.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { fetch as undiciFetch } from "undici";
import { AddressRefusedError } from "./address_guard.ts";
import type { GuardedHttp } from "./guarded_http.ts";

const connectTimeoutMs = 5000;
const toolsMax = 500;
/** Who asks has a time-out of its own. */
const longestCallMs = 15 * 60_000;

/** What a server may answer one request with; more ends the answer. */
const answerBytesMax = 4 * 1024 * 1024;
/** What it may send by itself before it is dialled anew. */
const streamBytesMax = 64 * 1024 * 1024;

interface Asking {
  callId: string | undefined;
  /** The answer is cut off: nobody need wait for the rest. */
  tooLarge(): void;
}

/** A session is shared by many calls: each request still says whose it is. */
const asksFor = new AsyncLocalStorage<Asking>();
const callIdKey = "frontdesk/call_id";

function withCaller(given: ConstructorParameters<typeof Headers>[0]): Record<string, string> {
  const callId = asksFor.getStore()?.callId;
  return { ...Object.fromEntries(new Headers(given)), ...(callId && { "x-call-id": callId }) };
}

export interface McpServer {
  url: string;
  headers?: Readonly<Record<string, string>>;
}

export interface McpTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments object. */
  parameters: Record<string, unknown>;
}

export interface McpSession {
  listTools(signal: AbortSignal): Promise<McpTool[]>;
  /** @returns the structured result, or its text. @throws McpError when the tool says that it failed */
  callTool(
    name: string,
    toolArguments: Record<string, unknown>,
    signal: AbortSignal,
    callId?: string,
  ): Promise<unknown>;
  close(): Promise<void>;
}

/** The server cannot be reached, or its tool failed. The message is for the author of the workflow. */
export class McpError extends Error {
  /** Another attempt may help. */
  readonly retryable: boolean;

  /** The server does not know the session any more: what was asked in it was not done. */
  get sessionIsGone(): boolean {
    return (this.cause as { code?: unknown } | undefined)?.code === 404;
  }

  constructor(message: string, options: ErrorOptions & { retryable: boolean }) {
    super(message, options);
    this.name = "McpError";
    this.retryable = options.retryable;
  }
}

/** @throws McpError */
export async function connectMcp({ url, headers = {} }: McpServer, http: GuardedHttp): Promise<McpSession> {
  const [{ Client }, { StreamableHTTPClientTransport }, { SSEClientTransport }] = await Promise.all([
    import("@modelcontextprotocol/sdk/client/index.js"),
    import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    import("@modelcontextprotocol/sdk/client/sse.js"),
  ]);
  const fetch = async (target: string | URL, init: RequestInit = {}) => {
    const response = await undiciFetch(String(target), {
      ...(init as object),
      headers: withCaller(init.headers),
      redirect: "error",
      dispatcher: http.dispatcher,
    });
    const bytesMax = init.method === "POST" ? answerBytesMax : streamBytesMax;
    return upTo(bytesMax, response as unknown as Response);
  };
  const options = { fetch, requestInit: { headers: { ...headers } } };
  const transports = [
    () => new StreamableHTTPClientTransport(new URL(url), options),
    () => new SSEClientTransport(new URL(url), options),
  ];
  let failure: unknown;
  for (const open of transports) {
    const client = new Client({ name: "frontdesk", version: "1" });
    try {
      // The SDK's own transport types are not exact about optional properties.
      await client.connect(open() as never, {
        timeout: connectTimeoutMs,
        signal: AbortSignal.timeout(connectTimeoutMs),
      });
      return sessionOf(client);
    } catch (error) {
      failure ??= error;
      await client.close().catch(() => undefined);
      if (refusedIn(error)) break;
    }
  }
  throw new McpError(refusedIn(failure)?.message ?? `Cannot reach the MCP server at ${new URL(url).host}`, {
    cause: failure,
    retryable: !refusedIn(failure),
  });
}

/** The same answer, cut off where it grows too large. */
function upTo(bytesMax: number, response: Response): Response {
  if (!response.body) return response;
  const asking = asksFor.getStore();
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes <= bytesMax) return controller.enqueue(chunk);
      asking?.tooLarge();
      controller.error(new Error(`more than ${bytesMax} bytes`));
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}

function sessionOf(client: import("@modelcontextprotocol/sdk/client/index.js").Client): McpSession {
  return {
    async listTools(signal) {
      const tools: McpTool[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.listTools(cursor === undefined ? {} : { cursor }, { signal });
        for (const { name, description, inputSchema } of page.tools) {
          tools.push({ name, description: description ?? "", parameters: { ...inputSchema } });
        }
        cursor = page.nextCursor;
      } while (cursor !== undefined && tools.length < toolsMax);
      return tools.slice(0, toolsMax);
    },
    async callTool(name, toolArguments, signal, callId) {
      let result: Awaited<ReturnType<typeof client.callTool>>;
      const tooLarge = new AbortController();
      const either = AbortSignal.any([signal, tooLarge.signal]);
      try {
        const asked = { name, arguments: toolArguments, ...(callId && { _meta: { [callIdKey]: callId } }) };
        const asking = { callId, tooLarge: () => tooLarge.abort() };
        result = await asksFor.run(asking, () =>
          client.callTool(asked, undefined, { signal: either, timeout: longestCallMs, resetTimeoutOnProgress: false }),
        );
      } catch (cause) {
        if (signal.aborted) throw cause;
        if (tooLarge.signal.aborted) {
          throw new McpError(`${name} answered more than ${answerBytesMax / 1024 / 1024} MiB`, { retryable: false });
        }
        throw new McpError(`Cannot call ${name}: the MCP server did not answer`, { cause, retryable: true });
      }
      const text = textOf(result.content);
      if (result.isError) throw new McpError(text || `${name} failed`, { retryable: false });
      return result.structuredContent ?? text;
    },
    close: () => client.close(),
  };
}

function textOf(content: unknown): string {
  const parts = Array.isArray(content) ? content : [];
  return parts.flatMap((part) => (part?.type === "text" ? [String(part.text)] : [])).join("\n");
}

function refusedIn(error: unknown): AddressRefusedError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefusedError) return cause;
  }
  return undefined;
}
