/** `POST /v1/agents/voice/tools/mcp/test`: what an author of an agent is told about an MCP server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server as HttpServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { silentLogger } from "#http/logger.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const path = "/v1/agents/voice/tools/mcp/test";

/** An MCP server of one tool, for who shows the token. */
const hotel: RequestListener = async (request, response) => {
  if (request.headers.authorization !== "Bearer room-key") {
    response.writeHead(401).end();
    return;
  }
  const mcp = new Server({ name: "hotel", version: "1" }, { capabilities: { tools: {} } });
  mcp.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [{ name: "free_rooms", description: "Counts them", inputSchema: { type: "object" } }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined as never });
  await mcp.connect(transport as never);
  await transport.handleRequest(request, response);
};

describe("a probe of an MCP server", () => {
  let open: ApiHarness;
  let api: ApiHarness;
  const servers: HttpServer[] = [];
  before(async () => {
    open = await openApiHarness(silentLogger, { allowPrivateAddresses: true });
    api = await openApiHarness();
  });
  after(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await open.close();
    await api.close();
  });

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener);
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  }

  const probe = (body: object, token = open.owner.token) =>
    open.call("POST", path, { token, body: { project_id: open.projectId, ...body } });

  it("lists the tools, bare, with a header or a connection's secret", async () => {
    const url = await serve(hotel);
    const expected = { ok: true, tools: [{ name: "free_rooms", description: "Counts them" }] };
    const withHeader = await probe({ url, headers: [{ key: "Authorization", value: "Bearer room-key" }] });
    assert.deepEqual([withHeader.status, withHeader.body], [200, expected]);
    const connection = await open.call("POST", "/v1/connections", {
      token: open.owner.token,
      body: { project_id: open.projectId, name: "Hotel", provider: "bearer", secret: "room-key" },
    });
    const withConnection = await probe({ url, connection_id: connection.body.data.id });
    assert.deepEqual(withConnection.body, expected);
  });

  it("answers 200 with ok false and the reason when it fails", async () => {
    const failures: [string, RegExp][] = [
      [await serve(hotel), /^Cannot reach the MCP server at 127\.0\.0\.1:\d+: it answered 401$/],
      [await serve((_, response) => response.end("<html>hello</html>")), /^Cannot reach the MCP server/],
      [await serve((_, response) => response.writeHead(302, { location: "/elsewhere" }).end()), /^Cannot reach/],
      [await serve((request) => request.socket.destroy()), /^Cannot reach the MCP server/],
      ["http://127.0.0.1:1/mcp", /^Cannot reach the MCP server at 127\.0\.0\.1:1$/],
      ["mcp.example", /^Expected an absolute URL$/],
      ["ftp://mcp.example/", /^Expected a URL with https or http$/],
      ["https://user:pass@mcp.example/", /^Expected a URL without user name and password$/],
    ];
    for (const [url, reason] of failures) {
      const { status, body } = await probe({ url });
      assert.deepEqual([status, body.ok, body.tools], [200, false, []], url);
      assert.match(body.error, reason);
    }
  });

  it("dials no private address", async () => {
    let asked = 0;
    const port = new URL(
      await serve((_, response) => {
        asked += 1;
        response.end();
      }),
    ).port;
    for (const host of ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254"]) {
      const { status, body } = await api.call("POST", path, {
        token: api.owner.token,
        body: { project_id: api.projectId, url: `http://${host}:${port}/mcp` },
      });
      assert.deepEqual([status, body.ok], [200, false], host);
      assert.match(body.error, /^Expected a public address: /);
    }
    assert.equal(asked, 0);
  });

  it("is for people of the project, and says which field is wrong", async () => {
    const url = "https://mcp.example/";
    const key = await open.call("POST", "/v1/access-keys", { token: open.owner.token, body: { name: "k" } });
    assert.equal((await probe({ url }, "")).status, 401);
    assert.equal((await probe({ url }, key.body.data.secret)).status, 401);
    assert.equal((await probe({ url }, open.stranger.token)).status, 404);
    assert.equal((await probe({ url }, open.member.token)).status, 403);
    for (const [body, status, field] of [
      [{ url, project_id: crypto.randomUUID() }, 404, "project_id"],
      [{ url, connection_id: crypto.randomUUID() }, 404, "connection_id"],
      [{}, 400, "url"],
      [{ url, project_id: "x" }, 400, "project_id"],
      [{ url, retries: 1 }, 400, "retries"],
      [{ url, headers: [{ key: "a b", value: "" }] }, 400, "headers.0.key"],
      [{ url, headers: [{ key: "a", value: "b\r\nc: d" }] }, 400, "headers.0.value"],
    ] as const) {
      const answer = await probe(body);
      assert.deepEqual([answer.status, Object.keys(answer.body.error.details)], [status, [field]]);
    }
  });
});
