import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import type { ToolProgress } from "./tool.ts";
import { createToolRunner, type ToolRunner } from "./tool_runner.ts";

const never = new AbortController().signal;
const event = (id: number, type: string, data: object = {}) => ({ id, type, json: JSON.stringify({ id, type, data }) });
const page = (...events: object[]) => JSON.stringify({ events, status: "running", last_event_id: 9 });

describe("a tool that is a run of an app", () => {
  let answer: (path: string, response: ServerResponse, request: IncomingMessage) => void = () => {};
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = `${request.method} ${request.url?.replace("/internal/calls/call/runs", "")}`;
    asked.push(path);
    answer(path, response, request);
  });
  let runner: ToolRunner;
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    runner = createToolRunner({ api: { url, secret: "internal" } });
  });
  beforeEach(() => {
    asked.length = 0;
  });
  after(async () => {
    await runner.close();
    server.closeAllConnections();
    server.close();
  });

  function run({ endsWithCall = false, signal = never } = {}) {
    const told: ToolProgress[] = [];
    const request = { is: "app", callId: "call", toolCallId: "c1", appId: "a", given: { q: 1 }, endsWithCall } as const;
    return { told, outcome: runner.run(request, signal, (update) => told.push(update)) };
  }

  it("is followed to its end, also where answers are lost on the way", async () => {
    let lost = 0;
    answer = (path, response) => {
      lost += 1;
      // Each question is lost once: the connection breaks, or the api is starting.
      if (lost === 1) response.destroy();
      else if (path === "POST ") response.end('{"run_id":"r1"}');
      else if (lost === 3) response.writeHead(503).end();
      else if (path.endsWith("after=0"))
        response.end(page(event(1, "run.created"), event(2, "node.started", { name: "Checking rates" })));
      else if (lost === 5) response.writeHead(200).destroy();
      else
        response.end(page(event(3, "node.progress", { percent: 40 }), event(4, "run.succeeded", { output: { a: 2 } })));
    };
    const { told, outcome } = run();
    assert.deepEqual(await outcome, { a: 2 });
    assert.deepEqual(told, [{ runId: "r1" }, { text: "Checking rates" }, { percent: 40 }]);
    assert.deepEqual(asked, [
      "POST ",
      "POST ",
      "GET /r1/events?after=0",
      "GET /r1/events?after=0",
      "GET /r1/events?after=2",
      "GET /r1/events?after=2",
    ]);
  });

  it("tells the model why it is not started, why it failed, and that it was cancelled", async () => {
    const answers: [string, RegExp][] = [
      ['{"error":"invalid_arguments: input.day: Expected string"}', /^ToolError: invalid_arguments: input.day: Exp/],
      [page(event(1, "run.failed", { error: { code: "x", message: "No such day" } })), /^ToolError: No such day$/],
      [page(event(1, "run.canceled")), /^ToolError: The run was cancelled$/],
    ];
    for (const [text, words] of answers) {
      answer = (path, response) => response.end(path === "POST " && text.includes("events") ? '{"run_id":"r1"}' : text);
      await assert.rejects(run().outcome, words);
    }
    answer = (_, response) => response.writeHead(404).end("{}");
    await assert.rejects(run().outcome, /^ToolError: This is not available any more$/);
  });

  it("that is given up before its id is known is cancelled all the same", async () => {
    const abort = new AbortController();
    const cancelled = new Promise<void>((resolve) => {
      answer = (path, response) => {
        if (path !== "POST ") return response.writeHead(204).end(resolve);
        abort.abort("interrupted");
        setImmediate(() => response.end('{"run_id":"r1"}'));
      };
    });
    await assert.rejects(run({ signal: abort.signal }).outcome);
    await cancelled;
    assert.deepEqual(asked, ["POST ", "POST /r1/cancel"]);
  });

  it("is cancelled when it is given up, and with the call where it is to end with it", async () => {
    for (const [reason, endsWithCall, isCancelled] of [
      ["timeout", false, true],
      ["interrupted", false, true],
      ["call_ended", true, true],
      ["call_ended", false, false],
    ] as const) {
      asked.length = 0;
      const abort = new AbortController();
      let isGone = () => {};
      const gone = new Promise<void>((resolve) => (isGone = resolve));
      const cancelled = new Promise<void>((resolve) => {
        answer = (path, response) => {
          response.on("close", isGone);
          if (path === "POST ") response.end('{"run_id":"r1"}');
          else if (path === "GET /r1/events?after=0") queueMicrotask(() => abort.abort(reason));
          else response.writeHead(204).end(resolve);
        };
      });
      const { outcome } = run({ endsWithCall, signal: abort.signal });
      await assert.rejects(outcome);
      await (isCancelled ? cancelled : gone);
      assert.equal(asked.includes("POST /r1/cancel"), isCancelled, `${reason} ${endsWithCall}`);
    }
  });
});
