/** `POST /v1/agents/voice/tools/http/test`: what an author of an agent is told about an HTTP tool. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { createApp } from "#api/app.ts";
import { silentLogger } from "#http/logger.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";

const path = "/v1/agents/voice/tools/http/test";
const key = "planted-key-of-a-tool-77aa";

describe("a try of an HTTP tool", () => {
  let open: ApiHarness;
  let url = "";
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => answer(request, response));
  before(async () => {
    open = await openApiHarness(silentLogger, { allowPrivateAddresses: true });
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await open.close();
  });

  const post = (at: string, body: object, token = open.owner.token) => open.call("POST", at, { token, body });
  const probe = (tool: object, over: object = {}, token = open.owner.token) =>
    post(path, { project_id: open.projectId, tool: { name: "find_room", ...tool }, ...over }, token);
  /** Answers with the headers and the path that it was asked with. */
  const echo = (request: IncomingMessage, response: ServerResponse) =>
    response.end(`${request.url} ${request.headers["x-api-key"]} ${request.headers.authorization}`);

  it("makes its request, and answers what came", async () => {
    answer = echo;
    const tool = { url: `${url}/rooms/{day}`, params: [{ name: "day", in: "path" }] };
    const { status, body } = await probe(tool, { arguments: { day: "2026-12-24" } });
    const { duration_ms, ...rest } = body;
    assert.ok(Number.isInteger(duration_ms));
    assert.deepEqual([status, rest], [200, { ok: true, status: 200, body: "/rooms/2026-12-24 undefined undefined" }]);
  });

  it("shows a credential to the host alone, be it a header's, an agent's or a connection's", async () => {
    let shown: (string | undefined)[] = [];
    answer = (request, response) => {
      shown = [String(request.headers["x-api-key"]), request.headers.authorization];
      echo(request, response);
    };
    const headers = [{ key: "X-Api-Key", value: key }];
    const given = await probe({ url, headers });
    assert.deepEqual([shown[0], given.body.body], [key, "/ ******** undefined"]);
    const config = { tools: [{ name: "find_room", url, headers }] };
    const agent = await post("/v1/agents/voice/agents", { name: "Desk", project_id: open.projectId, config });
    const { id: agent_id, config: masked } = agent.body.data;
    const stored = await probe({ url, headers: masked.tools[0].headers }, { agent_id });
    assert.deepEqual([shown[0], stored.body.body], [key, "/ ******** undefined"]);
    const connection = await post("/v1/connections", {
      project_id: open.projectId,
      name: "House",
      provider: "bearer",
      secret: key,
    });
    const connected = await probe({ url, connection_id: connection.body.data.id });
    assert.deepEqual([shown[1], connected.body.body], [`Bearer ${key}`, "/ undefined ********"]);
  });

  it("answers 200 with ok false and the reason when it fails", async () => {
    answer = (_, response) => response.writeHead(409).end("no room left");
    const refused = (await probe({ url, method: "POST" })).body;
    assert.deepEqual([refused.ok, refused.status, refused.body], [false, 409, "no room left"]);
    assert.match(refused.error, /^127\.0\.0\.1:\d+ answered 409$/);
    answer = () => {};
    const params = [{ name: "guests", type: "integer", required: true }];
    for (const [tool, error] of [
      [{ url, timeout_s: 0.1 }, /^No answer within 0\.1 s$/],
      [{ url: "http://127.0.0.1:1/" }, /^Cannot reach 127\.0\.0\.1:1$/],
      [{ url, params }, /^invalid_arguments: \/guests is required$/],
    ] as const) {
      const { status, body } = await probe(tool);
      assert.deepEqual([status, body.ok, body.status, body.body], [200, false, null, null], String(error));
      assert.match(body.error, error);
    }
  });

  it("cuts an answer that is too large", async () => {
    answer = (_, response) => response.end("x".repeat(1024 * 1024));
    assert.equal((await probe({ url })).body.body.length, 32 * 1024);
  });

  it("dials no private address", async () => {
    let asked = 0;
    answer = (_, response) => {
      asked += 1;
      response.end();
    };
    const { productSql: sql, bus, now } = open;
    const guarded = await createApp({ sql, bus, now, logger: silentLogger, config: appConfig });
    for (const host of ["127.0.0.1", "localhost", "[::1]", "2130706433", "169.254.169.254"]) {
      const tool = { name: "find_room", url: `http://${host}:${new URL(url).port}/` };
      const request = new Request(`http://api.test${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${open.owner.token}`, "content-type": "application/json" },
        body: JSON.stringify({ project_id: open.projectId, tool }),
      });
      const answered = await guarded.fetch(request);
      const body = (await answered.json()) as { ok: boolean; error: string };
      assert.deepEqual([answered.status, body.ok], [200, false], host);
      assert.match(body.error, /^Expected a public address: /);
    }
    await guarded.close();
    assert.equal(asked, 0);
  });

  it("is for people of the project, and says which field is wrong", async () => {
    assert.equal((await probe({ url }, {}, "")).status, 401);
    assert.equal((await probe({ url }, {}, open.stranger.token)).status, 404);
    assert.equal((await probe({ url }, {}, open.member.token)).status, 403);
    const nobody = crypto.randomUUID();
    const masked = [{ key: "X-Api-Key", value: "********77aa" }];
    for (const [tool, over, status, field] of [
      [{ url }, { project_id: nobody }, 404, "project_id"],
      [{ url }, { agent_id: nobody }, 404, "agent_id"],
      [{ url, connection_id: nobody }, {}, 404, "tool.connection_id"],
      [{ url: "ftp://pms.example" }, {}, 400, "tool.url"],
      [{ url: "https://{host}/rooms" }, {}, 400, "tool.url"],
      [{ url, retries: 1 }, {}, 400, "tool.retries"],
      [{ url, headers: [{ key: "a b", value: "" }] }, {}, 400, "tool.headers.0.key"],
      [{ url, headers: masked }, {}, 400, "tool.headers.0.value"],
      [{ url, connection_id: nobody, headers: [{ key: "Authorization", value: "x" }] }, {}, 400, "tool.headers.0.key"],
    ] as const) {
      const refused = await probe(tool, over);
      assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [status, [field]]);
    }
  });
});
