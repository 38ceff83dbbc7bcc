import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createGuardedHttp } from "./guarded_http.ts";
import { McpError } from "./mcp_client.ts";
import { McpPool } from "./mcp_pool.ts";

/** Sessions of a real MCP server that keeps state, as `initialize` opened them. */
const transports = new Map<string, StreamableHTTPServerTransport>();
let opened = 0;
const callers: (string | string[] | undefined)[] = [];

async function transportFor(sessionId: string | undefined): Promise<StreamableHTTPServerTransport | undefined> {
  if (sessionId !== undefined) return transports.get(sessionId);
  opened += 1;
  const mcp = new Server({ name: "hotel", version: "1" }, { capabilities: { tools: {} } });
  mcp.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [{ name: "free_rooms", inputSchema: { type: "object" } }],
  }));
  mcp.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (params.name === "hang") await new Promise(() => {});
    if (params.name === "fail") return { isError: true, content: [{ type: "text", text: "no" }] };
    return { content: [{ type: "text", text: `${params.arguments?.n}` }] };
  });
  const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  await mcp.connect(transport as never);
  return transport;
}

describe("a pool of MCP sessions", () => {
  const server = createServer(async (request, response) => {
    if (request.headers["x-call-id"]) callers.push(request.headers["x-call-id"]);
    const transport = await transportFor(request.headers["mcp-session-id"] as string | undefined);
    if (transport) await transport.handleRequest(request, response);
    else response.writeHead(404).end();
  });
  const http = createGuardedHttp({ allowPrivateAddresses: true });
  const never = new AbortController().signal;
  let url = "";
  let pool: McpPool;

  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    pool = new McpPool(http);
  });
  after(async () => {
    await pool.close();
    await http.close();
    server.closeAllConnections();
    server.close();
  });

  it("calls two hundred tools over one session, and each says whose call it is", async () => {
    await pool.listTools({ url });
    const all = Array.from({ length: 200 }, (_, n) => pool.callTool({ url }, "free_rooms", { n }, never, `call_${n}`));
    const results = await Promise.all(all);
    assert.deepEqual(
      results,
      Array.from({ length: 200 }, (_, n) => String(n)),
    );
    assert.equal(opened, 1);
    assert.equal(new Set(callers).size, 200);
  });

  it("keeps sessions of other headers apart", async () => {
    await pool.callTool({ url, headers: { authorization: "Bearer other" } }, "free_rooms", { n: 1 }, never);
    assert.equal(pool.size, 2);
  });

  it("opens a session that the server has forgotten once more", async () => {
    const before = opened;
    transports.clear();
    assert.equal(await pool.callTool({ url }, "free_rooms", { n: 7 }, never), "7");
    assert.equal(opened, before + 1);
  });

  it("keeps the session when a tool fails or is given up", async () => {
    const before = opened;
    await assert.rejects(pool.callTool({ url }, "fail", {}, never), (error) => error instanceof McpError);
    const abort = new AbortController();
    const hanging = pool.callTool({ url }, "hang", {}, abort.signal);
    abort.abort();
    await assert.rejects(hanging);
    assert.equal(await pool.callTool({ url }, "free_rooms", { n: 8 }, never), "8");
    assert.equal(opened, before);
  });

  it("says which server is away, and leads to none inside", async () => {
    await assert.rejects(
      pool.listTools({ url: "http://127.0.0.1:1/mcp" }),
      /Cannot reach the MCP server at 127.0.0.1:1/,
    );
    const guarded = createGuardedHttp({ allowPrivateAddresses: false });
    const careful = new McpPool(guarded);
    await assert.rejects(careful.listTools({ url }), /Expected a public address/);
    assert.equal(careful.size, 0);
    await careful.close();
    await guarded.close();
  });
});
