import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import type { HttpToolDefinition } from "#outbound/http_tool.ts";
import { resultBytesMax } from "./tool.ts";
import { createToolRunner, type ToolRunner } from "./tool_runner.ts";

describe("a tool that is an HTTP request", () => {
  let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void = () => {};
  const seen: {
    method: string | undefined;
    url: string | undefined;
    headers: IncomingMessage["headers"];
    body: string;
  }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body });
      answer(request, response, body);
    });
  });
  let address = "";
  let runner: ToolRunner;
  const never = new AbortController().signal;

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    runner = createToolRunner({ allowPrivateAddresses: true });
  });
  after(async () => {
    await runner.close();
    server.closeAllConnections();
    server.close();
  });

  const call = (tool: Partial<HttpToolDefinition>, given: Record<string, unknown> = {}, signal = never, by = runner) =>
    by.run(
      {
        is: "http",
        tool: { name: "book", url: `${address}/rooms`, ...tool },
        given,
        headers: { "idempotency-key": "call:c1", "x-call-id": "call" },
      },
      signal,
      () => {},
    );

  it("sends each param where it belongs, with its headers, and who asks", async () => {
    answer = (_, response) => response.end('{"booked":true}');
    const params = [
      { name: "room", in: "path" },
      { name: "day", in: "query" },
      { name: "x-guest", in: "header" },
      { name: "guests", type: "integer", in: "body" },
    ] as const;
    const headers = [{ key: "X-Api-Key", value: "k" }];
    const url = `${address}/rooms/{room}`;
    const given = { room: "a/b", day: "2026-12-24", "x-guest": "Ada", guests: 2 };
    assert.equal(await call({ method: "POST", url, params, headers }, given), '{"booked":true}');
    const request = seen.at(-1);
    assert.deepEqual([request?.method, request?.url], ["POST", "/rooms/a%2Fb?day=2026-12-24"]);
    assert.equal(request?.body, '{"guests":2}');
    assert.equal(request?.headers["x-guest"], "Ada");
    assert.equal(request?.headers["x-api-key"], "k");
    assert.equal(request?.headers["idempotency-key"], "call:c1");
    assert.equal(request?.headers["x-call-id"], "call");
  });

  it("tells the model what the host refused", async () => {
    answer = (_, response) => response.writeHead(409).end("no room left");
    await assert.rejects(call({ method: "POST" }), /answered 409: no room left$/);
  });

  it("is asked once more where it only looks something up, and once where it may change something", async () => {
    for (const [method, times] of [
      ["GET", 2],
      ["POST", 1],
    ] as const) {
      let asked = 0;
      answer = (_, response) => {
        asked += 1;
        response.writeHead(503).end();
      };
      await assert.rejects(call({ method }), /answered 503/);
      assert.equal(asked, times);
    }
  });

  it("ends at once with its signal, however long the host says nothing", async () => {
    const asked = new Promise<IncomingMessage>((resolve) => {
      answer = (request) => resolve(request);
    });
    const abort = new AbortController();
    const result = call({}, {}, abort.signal);
    const request = await asked;
    const gone = new Promise((resolve) => request.socket.once("close", resolve));
    abort.abort("timeout");
    await assert.rejects(result);
    await gone;
  });

  it("reads no more of an answer than the model may be told", async () => {
    answer = (_, response) => response.end("x".repeat(10 * 1024 * 1024));
    assert.equal(((await call({})) as string).length, resultBytesMax + 1);
  });

  it("tells of a host that cannot be reached, and of none inside", async () => {
    await assert.rejects(call({ url: "http://127.0.0.1:1/" }), /Cannot reach 127.0.0.1:1/);
    const guarded = createToolRunner({});
    try {
      const before = seen.length;
      await assert.rejects(call({}, {}, never, guarded), /Expected a public address/);
      await assert.rejects(call({ url: "http://169.254.169.254/latest" }, {}, never, guarded), /Expected a public/);
      assert.equal(seen.length, before);
    } finally {
      await guarded.close();
    }
  });

  it("leaves no path that it was not given, and no header that proves who asks, to the model", async () => {
    const url = `${address}/rooms/{room}`;
    const inPath = [{ name: "room", in: "path" }] as const;
    await assert.rejects(call({ url, params: inPath }, { room: ".." }), /may not be \.\./);
    const inHeader = [{ name: "Authorization", in: "header" }] as const;
    await assert.rejects(call({ params: inHeader }, { Authorization: "x" }), /cannot be an argument/);
    const free = [{ name: "x-guest", in: "header" }] as const;
    await assert.rejects(call({ params: free }, { "x-guest": "a\r\nhost: evil" }), /no header may have/);
  });
});
