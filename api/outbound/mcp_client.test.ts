import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createGuardedHttp } from "./guarded_http.ts";
import { connectMcp, McpError } from "./mcp_client.ts";

/** A real MCP server on Streamable HTTP, stateless: a pair of server and transport for each request. */
async function answerAsServer(
  request: Parameters<StreamableHTTPServerTransport["handleRequest"]>[0],
  response: Parameters<StreamableHTTPServerTransport["handleRequest"]>[1],
) {
  const mcp = new Server({ name: "hotel", version: "1" }, { capabilities: { tools: {} } });
  mcp.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [
      {
        name: "free_rooms",
        description: "Counts them",
        inputSchema: { type: "object", properties: { day: { type: "string" } } },
      },
    ],
  }));
  mcp.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (params.name !== "free_rooms")
      return { isError: true, content: [{ type: "text", text: `No tool ${params.name}` }] };
    return { content: [{ type: "text", text: `7 on ${params.arguments?.day}` }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined as never });
  await mcp.connect(transport as never);
  await transport.handleRequest(request, response);
}

describe("an MCP client", () => {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    answerAsServer(request, response).catch(() => response.destroy());
  });
  const http = createGuardedHttp({ allowPrivateAddresses: true });
  let url = "";
  const { signal } = new AbortController();
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  });
  after(async () => {
    await http.close();
    server.closeAllConnections();
    server.close();
  });

  it("lists and calls a server's tools, with its credential", async () => {
    const session = await connectMcp({ url, headers: { authorization: "Bearer secret" } }, http);
    const parameters = { type: "object", properties: { day: { type: "string" } } };
    assert.deepEqual(await session.listTools(signal), [{ name: "free_rooms", description: "Counts them", parameters }]);
    assert.equal(await session.callTool("free_rooms", { day: "Monday" }, signal), "7 on Monday");
    assert.ok(seen.every((authorization) => authorization === "Bearer secret"));
    await session.close();
  });

  it("tells what a tool says of its failure", async () => {
    const session = await connectMcp({ url }, http);
    await assert.rejects(
      session.callTool("gone", {}, signal),
      (error) => error instanceof McpError && !error.retryable && error.message === "No tool gone",
    );
    await session.close();
  });

  it("says so when nobody answers, and dials no private address", async () => {
    await assert.rejects(
      connectMcp({ url: "http://127.0.0.1:1/mcp" }, http),
      (error) => error instanceof McpError && error.retryable,
    );
    const guarded = createGuardedHttp({ allowPrivateAddresses: false });
    await assert.rejects(
      connectMcp({ url }, guarded),
      (error) => error instanceof McpError && !error.retryable && /public address/.test(error.message),
    );
    await guarded.close();
  });
});
