import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { parseTrustedProxies } from "#contracts/client_address.ts";
import { runTopic, streamGrantType, waitGrantType } from "#contracts/internal_runs.ts";
import { eventually, startTestGateway, type TestGateway } from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";
import { bodyBytesMax, isInternal } from "./front_door.ts";

const runId = "00000000-0000-4000-8000-000000000001";

/** An api that tells what reached it. */
async function startEchoApi(): Promise<{
  server: Server;
  url: string;
  requests: IncomingMessage[];
  aborted: number[];
  /** Answers what is held: `/held/answer`; `/held/stream` and `/held/wait`, with grants that cancel when the client leaves. */
  answerHeld: () => void;
}> {
  const requests: IncomingMessage[] = [];
  const aborted: number[] = [];
  const held: (() => void)[] = [];
  const server = createServer(async (req, res) => {
    requests.push(req);
    res.on("close", () => {
      if (!res.writableFinished) aborted.push(1);
    });
    if (req.url === "/stream") {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write("data: 1\n\n");
      req.socket.on("close", () => res.destroy());
      return;
    }
    if (req.url === "/hang") return;
    if (req.url === "/wait") {
      res.writeHead(200, { "content-type": waitGrantType, "x-kept": "yes" });
      return res.end(JSON.stringify({ run_id: runId, after: 1, until: "end", wait_ms: 60_000, answer: { due: 1 } }));
    }
    if (req.url === "/held/stream") {
      const granted = { run_id: runId, after: 0, types: [], events: [], cancel_on_disconnect: true };
      held.push(() => res.writeHead(200, { "content-type": streamGrantType }).end(JSON.stringify(granted)));
      return;
    }
    if (req.url === "/held/wait") {
      const granted = {
        run_id: runId,
        after: 1,
        until: "end",
        wait_ms: 60_000,
        answer: {},
        cancel_on_disconnect: true,
      };
      held.push(() => res.writeHead(200, { "content-type": waitGrantType }).end(JSON.stringify(granted)));
      return;
    }
    if (req.url === "/held/answer") {
      held.push(() => res.writeHead(429).end("Too many"));
      return;
    }
    if (req.url?.startsWith(`/internal/runs/${runId}/events`)) {
      return res.end(JSON.stringify({ events: [], status: "running", last_event_id: 1 }));
    }
    if (req.url === `/internal/runs/${runId}/answer`) {
      res.writeHead(202, { "content-type": "text/plain" });
      for await (const chunk of req) res.write(chunk);
      return res.end();
    }
    if (req.url === "/broken") {
      res.writeHead(200, { "content-length": "100" });
      res.write("half");
      setImmediate(() => res.destroy());
      return;
    }
    let body = "";
    for await (const chunk of req) body += String(chunk);
    res.writeHead(207, {
      "content-type": "text/plain",
      "set-cookie": ["a=1", "b=2"],
      connection: "x-secret",
      "x-secret": "1",
    });
    res.end(`${req.method} ${req.url} ${body.length > 100 ? body.length : body}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const answerHeld = () => {
    for (const answer of held.splice(0)) answer();
  };
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, aborted, answerHeld };
}

describe("paths that reach /internal", () => {
  it("are recognized however they are spelled", () => {
    for (const path of [
      "/internal",
      "/internal/calls",
      "//internal/x",
      "/./internal",
      "/v1/../internal/x",
      "/%69nternal/x",
      "/%2569nternal/x",
      "/v1/%2e%2e/internal",
      "/INTERNAL/x",
      "\\internal",
    ]) {
      assert.equal(isInternal(path), true, path);
    }
    for (const path of ["/", "/internals", "/v1/internal", "/v1/internal/..", "/%zz"])
      assert.equal(isInternal(path), false, path);
  });
});

for (const { transport, skip } of transports) {
  describe(`the front door on ${transport}`, { skip }, () => {
    let api: Awaited<ReturnType<typeof startEchoApi>>;
    let test: TestGateway;
    let url: string;
    before(async () => {
      api = await startEchoApi();
      test = await startTestGateway({ transport, config: { apiUrl: api.url, publicUrl: "https://desk.example" } });
      url = test.gateway.url;
    });
    after(async () => {
      await test.stop();
      api.server.closeAllConnections();
      await new Promise((resolve) => api.server.close(resolve));
    });

    it("passes on method, path, query, headers and body, and answers with the api's answer", async () => {
      const answer = await fetch(`${url}/v1/things?a=1&b=%20`, {
        method: "PUT",
        headers: {
          authorization: "Bearer x",
          "x-forwarded-for": "6.6.6.6",
          "x-thing": "y",
          "x-frontdesk-gateway": "guess",
        },
        body: "content",
      });
      assert.equal(answer.status, 207);
      assert.equal(await answer.text(), "PUT /v1/things?a=1&b=%20 content");
      assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
      const headers = api.requests.at(-1)?.headers;
      assert.equal(headers?.authorization, "Bearer x");
      assert.equal(headers?.["x-thing"], "y");
      assert.notEqual(headers?.["x-frontdesk-gateway"], "guess");
      assert.equal(headers?.["x-forwarded-for"], "127.0.0.1");
      assert.equal(headers?.["x-forwarded-proto"], "https");
      assert.equal(headers?.["x-forwarded-host"], `127.0.0.1:${test.gateway.port}`);
    });

    it("tells the api of the caller whom a trusted proxy names, and of no other", async () => {
      const behind = await startTestGateway({
        transport,
        config: { apiUrl: api.url, trustedProxies: parseTrustedProxies("127.0.0.0/8") },
      });
      try {
        const callerBy = async (headers: Record<string, string>) => {
          await fetch(`http://127.0.0.1:${behind.gateway.port}/v1/things`, { headers });
          return api.requests.at(-1)?.headers["x-forwarded-for"];
        };
        assert.equal(await callerBy({ "x-forwarded-for": "6.6.6.6, 192.0.2.7" }), "192.0.2.7");
        assert.equal(await callerBy({ forwarded: 'for="[2001:db8::7]:4711"' }), "2001:db8::7");
        assert.equal(await callerBy({ "x-forwarded-for": "192.0.2.7", forwarded: "for=6.6.6.6" }), "127.0.0.1");
        assert.equal(await callerBy({}), "127.0.0.1");
      } finally {
        await behind.stop();
      }
    });

    it("passes every path of an app's host on, its own paths included", async () => {
      const raw = await new Promise<string>((resolve) => {
        const socket = connect(test.gateway.port, "127.0.0.1");
        let text = "";
        socket.on("data", (data) => {
          text += data.toString();
        });
        socket.on("close", () => resolve(text));
        socket.write("GET /healthz HTTP/1.1\r\nHost: shop.apps.localhost:8080\r\nConnection: close\r\n\r\n");
        void eventually(() => text.includes("GET /healthz"), "the app's answer").then(() => socket.end());
      });
      assert.match(raw, /GET \/healthz/);
      assert.equal(api.requests.at(-1)?.headers.host, "shop.apps.localhost:8080");
    });

    it("never forwards /internal", async () => {
      const before = api.requests.length;
      for (const path of ["/internal/calls/x", "//internal/calls/x", "/%69nternal/calls/x"]) {
        const answer = await fetch(url + path, { method: "POST", headers: { authorization: "Bearer secret" } });
        assert.equal(answer.status, 404);
        assert.deepEqual(await answer.json(), {
          error: { code: "not_found", message: "Not Found" },
          detail: "Not Found",
        });
      }
      assert.equal(api.requests.length, before);
    });

    it("streams both ways", async () => {
      const abort = new AbortController();
      const answer = await fetch(`${url}/stream`, { signal: abort.signal });
      const reader = answer.body?.getReader();
      const first = await reader?.read();
      assert.equal(Buffer.from(first?.value ?? []).toString(), "data: 1\n\n");
      const before = api.aborted.length;
      abort.abort();
      await eventually(() => api.aborted.length > before, "the api sees that the client is gone");

      const size = 3 * 1024 * 1024;
      const large = await fetch(`${url}/large`, { method: "POST", body: "x".repeat(size) });
      assert.equal(await large.text(), `POST /large ${size}`);
    });

    it("asks the api nothing before a body is whole, so that slow senders hold up nobody", async () => {
      const slow = Array.from({ length: 200 }, () => connect(test.gateway.port, "127.0.0.1"));
      try {
        for (const socket of slow) {
          await once(socket, "connect");
          socket.write("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx");
        }
        const answer = await fetch(`${url}/v1/things`);
        assert.equal(answer.status, 207);
        assert.ok(!api.requests.some((request) => request.url === "/slow"));
        const last = slow.at(-1);
        last?.write("y".repeat(99));
        assert.match(String((await once(last ?? assert.fail(), "data"))[0]), /^HTTP\/1.1 207 /);
        assert.equal(api.requests.filter((request) => request.url === "/slow").length, 1);
      } finally {
        for (const socket of slow) socket.destroy();
      }
    });

    it("waits for runs without a connection, and then hands on how the api words the answer", async () => {
      const waiting = Array.from({ length: 140 }, () => fetch(`${url}/wait`, { method: "POST" }));
      const isAsked = () => api.requests.filter((request) => request.url === "/wait").length === 140;
      await eventually(isAsked, "the api has granted all waits");
      assert.equal((await fetch(`${url}/v1/things`)).status, 207);
      const end = { events: [{ id: 2, type: "run.succeeded", json: "{}" }] };
      await test.bus.publish(runTopic(runId), JSON.stringify(end));
      for (const answer of await Promise.all(waiting)) {
        assert.deepEqual([answer.status, answer.headers.get("x-kept")], [202, "yes"]);
        assert.equal(answer.headers.get("content-type"), "text/plain");
        assert.deepEqual(await answer.json(), { answer: { due: 1 }, is_late: false });
      }
    });

    for (const what of ["/held/stream", "/held/wait"]) {
      it(`cancels a run whose client left before the api had granted it: ${what}`, async () => {
        const abandoned = () => api.requests.filter(({ url }) => url === `/internal/runs/${runId}/abandon`).length;
        const before = abandoned();
        const socket = connect(test.gateway.port, "127.0.0.1");
        socket.write(`POST ${what} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
        await eventually(() => api.requests.some(({ url }) => url === what), "the api is asked");
        socket.destroy();
        // By then the gateway has seen that the client is gone, though what follows holds either way.
        await fetch(`${url}/v1/things`);
        api.answerHeld();
        await eventually(() => abandoned() === before + 1, "the run is abandoned");
      });
    }

    it("drops an answer whose client left before it came", async (t) => {
      // The runner only notes what no test is known to have done, where a gateway would end.
      const uncaught = t.mock.fn();
      process.on("uncaughtExceptionMonitor", uncaught);
      t.after(() => process.off("uncaughtExceptionMonitor", uncaught));
      const socket = connect(test.gateway.port, "127.0.0.1");
      socket.write("POST /held/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
      await eventually(() => api.requests.some(({ url }) => url === "/held/answer"), "the api is asked");
      socket.destroy();
      await fetch(`${url}/v1/things`);
      api.answerHeld();
      for (let i = 0; i < 10; i += 1) assert.equal((await fetch(`${url}/v1/things`)).status, 207);
      assert.deepEqual(uncaught.mock.calls, []);
    });

    it("keeps connections to the api for others, whatever one caller lets hang", async () => {
      const gone = new AbortController();
      const headers = { authorization: "Bearer hanging" };
      const hanging = Array.from({ length: 150 }, () => fetch(`${url}/hang`, { headers, signal: gone.signal }));
      const reached = () => api.requests.filter((request) => request.url === "/hang").length;
      await eventually(() => reached() === 32, "the caller has its share");
      assert.equal((await fetch(`${url}/v1/things`, { headers: { authorization: "Bearer other" } })).status, 207);
      assert.equal(reached(), 32);
      gone.abort();
      await Promise.allSettled(hanging);
    });

    it("shows a client that an answer broke off", async () => {
      await assert.rejects(fetch(`${url}/broken`).then((answer) => answer.text()));
    });

    it("refuses a body that is too large", async () => {
      const status = await new Promise<string>((resolve) => {
        const socket = connect(test.gateway.port, "127.0.0.1");
        socket.on("data", (data) => {
          resolve(data.toString().split("\r\n")[0] ?? "");
          socket.destroy();
        });
        socket.on("error", () => {});
        socket.write(`POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytesMax + 1}\r\n\r\n`);
      });
      assert.match(status, /413/);
    });

    it("refuses other methods on what it serves itself, and says which there are", async () => {
      const before = api.requests.length;
      for (const path of ["/healthz", "/readyz", "/talk", "/v1/voice/calls/x/y"]) {
        const answer = await fetch(url + path, { method: "POST", body: "{}" });
        assert.deepEqual([answer.status, answer.headers.get("allow")], [405, "GET, HEAD"], path);
        const body = (await answer.json()) as { error: { code: string }; detail: string };
        assert.deepEqual([body.error.code, body.detail], ["method_not_allowed", "Method Not Allowed"]);
      }
      assert.equal(api.requests.length, before);
    });

    it("serves its own health, figures and page", async () => {
      assert.deepEqual(await (await fetch(`${url}/healthz`)).json(), { status: "ok" });
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
      test.api.isDown = true;
      assert.equal((await fetch(`${url}/readyz`)).status, 200, "one miss of the api is none of ours");
      test.api.isDown = false;
      const figures = await test.gateway.metrics.metrics();
      assert.match(figures, /^frontdesk_call_slots 16$/m);
      assert.match(figures, /^frontdesk_call_slots_in_use 0$/m);
      const page = await fetch(`${url}/talk`);
      assert.equal(page.status, 200);
      assert.match(String(page.headers.get("content-security-policy")), /wss:\/\/desk\.example/);
    });
  });

  describe(`the front door on ${transport} without an api`, { skip }, () => {
    it("answers 503 in the forms of both services, with Retry-After", async () => {
      const test = await startTestGateway({ transport, config: { apiUrl: "http://127.0.0.1:9" } });
      try {
        const answer = await fetch(`${test.gateway.url}/v1/x`, { method: "POST", body: "x" });
        assert.equal(answer.status, 503);
        assert.deepEqual(await answer.json(), {
          error: { code: "unavailable", message: "Service Unavailable" },
          detail: "Service Unavailable",
        });
        assert.match(String(answer.headers.get("retry-after")), /^\d+$/);
      } finally {
        await test.stop();
      }
    });
  });
}
