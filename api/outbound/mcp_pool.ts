/**
 * Sessions with MCP servers, shared: one for each address and set of headers, opened by the first who asks and
 * closed when nobody has asked for a while. A session that the server has forgotten is opened once more.
 */
import type { GuardedHttp } from "./guarded_http.ts";
import { connectMcp, McpError, type McpServer, type McpSession, type McpTool } from "./mcp_client.ts";

/** A session that nobody uses for so long is closed. */
const idleMsMax = 5 * 60_000;
const lookMs = 60_000;
/** Shared by all who ask, so that no one's signal ends it. */
const listMsMax = 10_000;
/** More sessions than this at once are refused. */
const sessionsMax = 256;

interface Entry {
  session: Promise<McpSession>;
  tools: Promise<McpTool[]> | undefined;
  users: number;
  usedAtMs: number;
}

export class McpPool {
  readonly #http: GuardedHttp;
  readonly #entries = new Map<string, Entry>();
  readonly #sweep: NodeJS.Timeout;

  /** `http` stays its owner's to close. */
  constructor(http: GuardedHttp) {
    this.#http = http;
    this.#sweep = setInterval(() => this.#closeIdle(), lookMs);
    this.#sweep.unref();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The server's tools, asked for once a session. @throws McpError */
  async listTools(server: McpServer): Promise<McpTool[]> {
    return this.#use(server, async (session, entry) => {
      entry.tools ??= session.listTools(AbortSignal.timeout(listMsMax));
      try {
        return await entry.tools;
      } catch (cause) {
        entry.tools = undefined;
        throw cause;
      }
    });
  }

  /** @throws McpError when the server cannot be reached or its tool failed */
  async callTool(
    server: McpServer,
    name: string,
    toolArguments: Record<string, unknown>,
    signal: AbortSignal,
    callId?: string,
  ): Promise<unknown> {
    return this.#use(server, (session) => session.callTool(name, toolArguments, signal, callId));
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(entries.map(closeEntry));
  }

  async #use<T>(server: McpServer, run: (session: McpSession, entry: Entry) => Promise<T>): Promise<T> {
    const key = keyOf(server);
    for (let attempt = 1; ; attempt += 1) {
      const entry = this.#entries.get(key) ?? this.#open(key, server);
      entry.users += 1;
      try {
        return await run(await entry.session, entry);
      } catch (cause) {
        const isLost = cause instanceof McpError && cause.retryable;
        if (isLost && this.#entries.get(key) === entry) {
          this.#entries.delete(key);
          void closeEntry(entry);
        }
        // What the server answered with "no such session" it has not carried out.
        if (attempt > 1 || !(cause instanceof McpError && cause.sessionIsGone)) throw cause;
      } finally {
        entry.users -= 1;
        entry.usedAtMs = Date.now();
      }
    }
  }

  #open(key: string, server: McpServer): Entry {
    if (this.#entries.size >= sessionsMax) {
      throw new McpError("Too many MCP servers are in use at the moment", { retryable: true });
    }
    const session = connectMcp(server, this.#http);
    const entry: Entry = { session, tools: undefined, users: 0, usedAtMs: Date.now() };
    this.#entries.set(key, entry);
    session.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return entry;
  }

  #closeIdle(): void {
    const before = Date.now() - idleMsMax;
    for (const [key, entry] of this.#entries) {
      if (entry.users > 0 || entry.usedAtMs > before) continue;
      this.#entries.delete(key);
      void closeEntry(entry);
    }
  }
}

async function closeEntry({ session }: Entry): Promise<void> {
  await session.then((open) => open.close()).catch(() => undefined);
}

function keyOf({ url, headers = {} }: McpServer): string {
  return JSON.stringify([url, Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1))]);
}
