import assert from "node:assert/strict";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { WebSocket } from "ws";
import { eventually } from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";
import { openTransport } from "./open_transport.ts";
import type {
  HttpRequest,
  HttpResponse,
  SocketEnd,
  SocketEvents,
  Transport,
  TransportSocket,
  UpgradeRequest,
} from "./transport.ts";

const messageBytesMax = 64 * 1024;
const upgradeHeaders =
  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

for (const { transport: choice, skip } of transports) {
  describe(`the ${choice} transport`, { skip }, () => {
    let transport: Transport;
    let port: number;
    let base: string;
    let onRequest: (request: HttpRequest, response: HttpResponse) => void | Promise<void>;
    let onUpgrade: (upgrade: UpgradeRequest) => void | Promise<void>;
    let server: {
      socket?: TransportSocket;
      events: (string | Uint8Array)[];
      frames: number;
      pongs: string[];
      end?: SocketEnd;
    };

    const socketEvents = (): SocketEvents => {
      const own = server;
      return {
        onText: (text) => void own.events.push(text),
        onBinary: (bytes) => void own.events.push(bytes),
        onOversized: () => own.socket?.close(1009, "too_big"),
        onFrame: () => {
          own.frames += 1;
        },
        onPong: (payload) => void own.pongs.push(payload),
        onDrain: () => {},
        onEnd: (end) => {
          assert.equal(own.end, undefined, "the end comes once");
          own.end = end;
        },
      };
    };
    const accept = async (upgrade: UpgradeRequest) => {
      const own = server;
      const socket = await upgrade.accept(socketEvents());
      if (socket) own.socket = socket;
    };

    before(async () => {
      transport = await openTransport(
        { onRequest: (request, response) => onRequest(request, response), onUpgrade: (upgrade) => onUpgrade(upgrade) },
        { choice, messageBytesMax, turnLimits: { stalledMs: 200 }, warn: () => {} },
      );
      port = await transport.listen("127.0.0.1", 0);
      base = `http://127.0.0.1:${port}`;
    });
    after(() => transport.close());
    beforeEach(() => {
      server = { events: [], frames: 0, pongs: [] };
      onUpgrade = accept;
    });

    /** An open client socket, and what it heard. */
    async function openClient(path = "/socket") {
      const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false });
      const heard: (string | Uint8Array)[] = [];
      let closed: { code: number; reason: string } | undefined;
      ws.on("message", (data: Buffer, isBinary) => void heard.push(isBinary ? new Uint8Array(data) : data.toString()));
      ws.on("close", (code, reason) => {
        closed = { code, reason: reason.toString() };
      });
      ws.on("error", () => {});
      await new Promise<void>((resolve) => ws.once("open", resolve));
      const raw = (ws as unknown as { _socket: Socket })._socket;
      return {
        ws,
        heard,
        raw,
        closed: async () => {
          await eventually(() => closed !== undefined, "the client is closed");
          return closed;
        },
      };
    }
    const ended = async () => {
      await eventually(() => server.end !== undefined, "the server sees the end");
      return server.end;
    };

    it("hands over method, path, query, headers and body as they came", async () => {
      let seen: Record<string, unknown> = {};
      onRequest = async (request, response) => {
        const before = { ...request };
        await new Promise((resolve) => setImmediate(resolve));
        let body = "";
        for await (const chunk of request.body()) body += Buffer.from(chunk).toString();
        seen = { ...before, body };
        response.send(201, [["x-answer", "yes"]], "created");
      };
      const answer = await fetch(`${base}/a%20b/../c?x=1&y=%2F`.replace("/../c", "/c"), {
        method: "PATCH",
        headers: { "X-One": "1" },
        body: "hello",
      });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.get("x-answer"), "yes");
      assert.equal(await answer.text(), "created");
      assert.equal(seen.method, "PATCH");
      assert.equal(seen.path, "/a%20b/c");
      assert.equal(seen.query, "x=1&y=%2F");
      assert.equal(seen.body, "hello");
      assert.equal(seen.hasBody, true);
      assert.equal((seen.headers as Record<string, string>)["x-one"], "1");
      assert.equal(seen.remoteAddress, "127.0.0.1");
    });

    it("makes no answers ahead for a client that reads none, cuts it, and serves the others", async () => {
      let handled = 0;
      const cut = new Set<AbortSignal>();
      onRequest = async (request, response) => {
        if (request.path === "/piped") handled += 1;
        request.signal.addEventListener("abort", () => cut.add(request.signal));
        await new Promise((resolve) => setImmediate(resolve));
        response.send(200, [], "x".repeat(256 * 1024));
      };
      const crowd = Array.from({ length: 5 }, () => connect(port, "127.0.0.1"));
      const piped = "GET /piped HTTP/1.1\r\nHost: x\r\n\r\n";
      for (const socket of crowd) {
        socket.pause();
        socket.on("error", () => undefined);
        await new Promise((resolve) => socket.once("connect", resolve));
        socket.write(piped.repeat(20_000));
      }
      assert.equal((await (await fetch(`${base}/other`)).text()).length, 256 * 1024);
      await eventually(() => cut.size === crowd.length, "all who read nothing are cut");
      // What fits into the kernel's buffers was answered, and no more.
      assert.ok(handled < 5 * 200, `${handled} of 100000`);
      assert.equal((await (await fetch(`${base}/other`)).text()).length, 256 * 1024);
      for (const socket of crowd) socket.destroy();
    });

    // uWebSockets.js cuts a client that does not wait for its answers.
    const itOnWs = choice === "ws" ? it : () => undefined;
    itOnWs("answers requests that were sent ahead one after the other, to a client that reads", async () => {
      onRequest = async (request, response) => {
        await new Promise((resolve) => setImmediate(resolve));
        let body = "";
        for await (const chunk of request.body()) body += Buffer.from(chunk).toString();
        response.send(200, [], `${request.path}${body};`);
      };
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.on("data", (data) => {
        text += data.toString();
      });
      const asked = Array.from({ length: 3000 }, (_, i) => i);
      const one = (i: number) => `POST /${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n+`;
      socket.write(asked.map(one).join(""));
      await eventually(() => text.includes("/2999+;"), "the last answer");
      assert.deepEqual(
        [...text.matchAll(/\/(\d+)\+;/g)].map((match) => Number(match[1])),
        asked,
      );
      socket.destroy();
    });

    it("answers HEAD and 204 without a body", async () => {
      onRequest = (request, response) =>
        request.path === "/none" ? response.send(204, []) : response.send(200, [["x-a", "b"]], "four");
      const head = await fetch(`${base}/x`, { method: "HEAD" });
      assert.equal(head.headers.get("content-length"), "4");
      assert.equal(await head.text(), "");
      assert.equal((await fetch(`${base}/none`)).status, 204);
    });

    it("streams a large request body no faster than it is read", async () => {
      const size = 8 * 1024 * 1024;
      onRequest = async (request, response) => {
        let bytes = 0;
        for await (const chunk of request.body()) {
          bytes += chunk.byteLength;
          await new Promise((resolve) => setImmediate(resolve));
        }
        response.send(200, [], String(bytes));
      };
      const answer = await fetch(base, { method: "POST", body: new Uint8Array(size) });
      assert.equal(await answer.text(), String(size));
    });

    it("streams a large answer and waits while the client does not read", async () => {
      const chunk = new Uint8Array(256 * 1024).fill(7);
      const chunks = 64;
      let written = 0;
      let waits = 0;
      onRequest = async (_request, response) => {
        const stream = response.stream(200, [["content-type", "x/y"]]);
        let wake = () => {};
        stream.onWritable(() => wake());
        while (written < chunks) {
          written += 1;
          if (stream.write(chunk)) continue;
          waits += 1;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        stream.end();
      };
      const client = connect(port, "127.0.0.1");
      client.pause();
      client.write("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      await eventually(() => waits > 0, "the answer waits for its reader");
      assert.ok(written < chunks);
      let bytes = 0;
      client.on("data", (data) => {
        bytes += data.byteLength;
      });
      client.resume();
      await eventually(() => bytes >= chunk.byteLength * chunks, "all of it arrives");
      client.destroy();
    });

    it("sends the last of what it took once the client reads, though nothing more is written", async () => {
      const chunk = new Uint8Array(10_000).fill(7);
      let written = 0;
      let stands = false;
      onRequest = (_request, response) => {
        const stream = response.stream(200, [["content-type", "x/y"]]);
        stream.onWritable(() => undefined);
        // In turns of the loop: the kernel moves what it has, until the client's silence reaches us.
        const write = () => {
          stands = !stream.write(chunk);
          written += chunk.byteLength;
          if (!stands) setImmediate(write);
        };
        write();
      };
      const client = connect(port, "127.0.0.1");
      client.pause();
      client.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
      await eventually(() => stands, "the answer stands");
      let sevens = 0;
      client.on("data", (data) => {
        for (const byte of data) if (byte === 7) sevens += 1;
      });
      client.resume();
      await eventually(() => sevens === written, "all of it arrives");
      client.destroy();
    });

    it("shows its answer to a client that is still sending, at once or in pieces", async () => {
      const body = Buffer.alloc(10_000_000, 120);
      for (const path of ["/send", "/stream"]) {
        onRequest = (request, response) => {
          if (request.path === "/send") return response.send(413, [], "too large");
          const stream = response.stream(413, []);
          stream.write(Buffer.from("too large"));
          stream.end();
        };
        for (const chunked of [false, true]) {
          const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
            const headers = chunked ? {} : { "content-length": String(body.length) };
            const sent = request({ host: "127.0.0.1", port, method: "POST", path, agent: false, headers });
            sent.on("error", reject).on("response", async (response) => {
              let text = "";
              for await (const chunk of response.setEncoding("utf8")) text += chunk;
              resolve({ status: response.statusCode, text });
            });
            sent.write(body);
            sent.end();
          });
          assert.deepEqual(answer, { status: 413, text: "too large" }, `${path} ${chunked}`);
        }
      }
    });

    it("aborts the signal when the client goes away before its answer", async () => {
      let aborted = false;
      let asked = false;
      onRequest = (request) => {
        asked = true;
        request.signal.addEventListener("abort", () => {
          aborted = true;
        });
      };
      const client = connect(port, "127.0.0.1");
      client.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
      await eventually(() => asked, "the request is there");
      client.destroy();
      await eventually(() => aborted, "the signal is aborted");
    });

    it("answers 500 when a handler throws, and lives on", async () => {
      onRequest = async () => {
        throw new Error("broken");
      };
      assert.equal((await fetch(base)).status, 500);
      onRequest = (_request, response) => response.send(200, []);
      assert.equal((await fetch(base)).status, 200);
    });

    it("refuses an upgrade with a normal HTTP answer, also after a wait", async () => {
      onUpgrade = async (upgrade) => {
        await new Promise((resolve) => setImmediate(resolve));
        upgrade.refuse(503, [["retry-after", "3"]], '{"code":"capacity"}');
      };
      const ws = new WebSocket(`ws://127.0.0.1:${port}/`);
      ws.on("error", () => {});
      const response = await new Promise<{ status: number; retry: string; body: string }>((resolve) =>
        ws.on("unexpected-response", (_, res) => {
          let body = "";
          res.on("data", (data: Buffer) => {
            body += data.toString();
          });
          res.on("end", () =>
            resolve({ status: res.statusCode ?? 0, retry: String(res.headers["retry-after"]), body }),
          );
        }),
      );
      ws.terminate();
      assert.deepEqual(response, { status: 503, retry: "3", body: '{"code":"capacity"}' });
    });

    it("notices that a client goes away while its upgrade is decided, and accepts nothing then", async () => {
      let pending: UpgradeRequest | undefined;
      onUpgrade = (upgrade) => {
        pending = upgrade;
      };
      const client = connect(port, "127.0.0.1");
      client.write(`GET /x HTTP/1.1\r\nHost: x\r\n${upgradeHeaders}\r\n`);
      await eventually(() => pending !== undefined, "the upgrade is asked for");
      client.destroy();
      await eventually(() => pending?.head.signal.aborted === true, "the signal is aborted");
      assert.equal(await pending?.accept(socketEvents()), undefined);
      pending?.refuse(503, [], "");
    });

    it("accepts one upgrade from within the callback of another", async () => {
      const ends: (typeof server)[] = [];
      const acceptApart = (upgrade: UpgradeRequest) => {
        server = { events: [], frames: 0, pongs: [] };
        ends.push(server);
        return accept(upgrade);
      };
      let first: UpgradeRequest | undefined;
      onUpgrade = async (upgrade) => {
        if (!first) {
          first = upgrade;
          return;
        }
        const firstAccepted = acceptApart(first);
        await new Promise((resolve) => setImmediate(resolve));
        await Promise.all([firstAccepted, acceptApart(upgrade)]);
      };
      const clients = await Promise.all([openClient("/one"), openClient("/two")]);
      for (const { ws } of clients) ws.send("hello");
      await eventually(() => ends.every(({ events }) => events.length === 1), "both are heard");
      for (const { ws } of clients) ws.terminate();
      await eventually(() => ends.every(({ end }) => end !== undefined), "both ends are seen");
    });

    it("refuses what is no version 13 upgrade without asking", async () => {
      let asked = false;
      onUpgrade = () => {
        asked = true;
      };
      const client = connect(port, "127.0.0.1");
      let answer = "";
      client.on("data", (data) => {
        answer += data.toString();
      });
      client.write(`GET /x HTTP/1.1\r\nHost: x\r\n${upgradeHeaders.replace("13", "8")}\r\n`);
      await eventually(() => answer.includes("\r\n\r\n"), "an answer");
      assert.match(answer, /^HTTP\/1\.1 426 /);
      assert.equal(asked, false);
      client.destroy();
    });

    it("chooses the subprotocol that the handler names", async () => {
      onUpgrade = async (upgrade) => void (await upgrade.accept(socketEvents(), "voice.v1"));
      const ws = new WebSocket(`ws://127.0.0.1:${port}/`, ["a", "voice.v1"]);
      await new Promise((resolve) => ws.once("open", resolve));
      assert.equal(ws.protocol, "voice.v1");
      ws.terminate();
    });

    it("carries text and bytes both ways in order, and the bytes are the listener's to keep", async () => {
      const { ws, heard } = await openClient();
      ws.send("one");
      ws.send(new Uint8Array([1, 2, 3]));
      ws.send("zwei – drei");
      ws.send(new Uint8Array(messageBytesMax).fill(9));
      await eventually(() => server.events.length === 4, "four messages");
      assert.deepEqual(server.events.slice(0, 3), ["one", new Uint8Array([1, 2, 3]), "zwei – drei"]);
      assert.equal(
        (server.events[3] as Uint8Array).every((byte) => byte === 9),
        true,
      );
      assert.equal(server.frames, 4);
      server.socket?.batch(() => {
        server.socket?.sendText("a");
        server.socket?.sendBinary(new Uint8Array([4]));
        server.socket?.sendText("b");
      });
      await eventually(() => heard.length === 3, "three messages back");
      assert.deepEqual(heard, ["a", new Uint8Array([4]), "b"]);
      ws.close();
      await ended();
    });

    it("hears what a client sent ahead of the 101", async () => {
      let pending: UpgradeRequest | undefined;
      onUpgrade = (upgrade) => {
        pending = upgrade;
      };
      const client = connect(port, "127.0.0.1");
      // A masked text frame "hi", mask 0.
      client.write(`GET /x HTTP/1.1\r\nHost: x\r\n${upgradeHeaders}\r\n`);
      await eventually(() => pending !== undefined, "the upgrade is asked for");
      if (choice === "ws") client.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
      await new Promise((resolve) => setImmediate(resolve));
      if (pending) await accept(pending);
      if (choice === "uws") client.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
      await eventually(() => server.events[0] === "hi", "the early message");
      client.destroy();
      await ended();
    });

    it("tells a close frame from a lost link", async () => {
      for (const [code, reason] of [
        [1000, "bye"],
        [1001, ""],
        [4321, "own"],
      ] as const) {
        server = { events: [], frames: 0, pongs: [] };
        const { ws } = await openClient();
        ws.close(code, reason);
        assert.deepEqual(await ended(), { kind: "closed", code, reason });
      }
      server = { events: [], frames: 0, pongs: [] };
      const silent = await openClient();
      silent.ws.close();
      assert.deepEqual(await ended(), { kind: "closed", code: 1005, reason: "" });

      for (const cut of [
        (raw: Socket) => raw.destroy(),
        (raw: Socket) => raw.resetAndDestroy(),
        (raw: Socket) => raw.end(),
      ]) {
        server = { events: [], frames: 0, pongs: [] };
        const { raw } = await openClient();
        cut(raw);
        assert.deepEqual(await ended(), { kind: "lost" });
      }
    });

    it("closes with the code and reason that it is told", async () => {
      const { closed } = await openClient();
      server.socket?.sendText("last");
      server.socket?.close(4010, "max_duration");
      assert.deepEqual(await closed(), { code: 4010, reason: "max_duration" });
      await ended();
      server.socket?.sendText("too late");
      server.socket?.ping();
      server.socket?.close(1000, "");
      server.socket?.terminate();
      assert.equal(server.socket?.unsentBytes(), 0);
    });

    it("lets a message above the bound be answered with 1009, in one frame or in fragments", async () => {
      const whole = await openClient();
      whole.ws.send(new Uint8Array(messageBytesMax + 1));
      assert.equal((await whole.closed())?.code, 1009);

      server = { events: [], frames: 0, pongs: [] };
      const parts = await openClient();
      parts.ws.send(new Uint8Array(messageBytesMax), { fin: false });
      parts.ws.send(new Uint8Array(10), { fin: true });
      assert.equal((await parts.closed())?.code, 1009);
      assert.deepEqual(server.events, []);
    });

    it("reports text that is not UTF-8 as a violation", async () => {
      const { ws } = await openClient();
      ws.send(Buffer.from([0xff, 0xfe]), { binary: false });
      assert.deepEqual(await ended(), { kind: "violation", violation: "bad_encoding" });
    });

    it("sees pings and pongs as signs of life", async () => {
      const { ws } = await openClient();
      ws.ping();
      await eventually(() => server.frames === 1, "the ping");
      server.socket?.ping();
      await eventually(() => server.frames === 2, "the pong");
      ws.terminate();
      await ended();
    });

    it("gets what a ping carried back behind what was sent before it, once the client reads", async () => {
      const { heard, raw, ws } = await openClient();
      raw.pause();
      server.socket?.sendBinary(new Uint8Array(4));
      server.socket?.ping("a:20");
      server.socket?.ping();
      assert.deepEqual(server.pongs, []);
      ws.on("ping", (payload: Buffer) => void heard.push(`ping ${payload}`));
      raw.resume();
      await eventually(() => server.pongs.length === 2, "the pongs");
      assert.deepEqual(server.pongs, ["a:20", ""]);
      assert.deepEqual(heard, [new Uint8Array(4), "ping a:20", "ping "]);
      ws.terminate();
      await ended();
    });

    it("counts what a client that does not read leaves unsent", async () => {
      const { raw, ws } = await openClient();
      raw.pause();
      const chunk = new Uint8Array(64 * 1024);
      await eventually(() => {
        server.socket?.sendBinary(chunk);
        return (server.socket?.unsentBytes() ?? 0) > 256 * 1024;
      }, "a backlog");
      raw.resume();
      await eventually(() => server.socket?.unsentBytes() === 0, "it drains");
      ws.terminate();
      await ended();
    });

    it("refuses a port that is taken", async () => {
      const other = await openTransport({ onRequest, onUpgrade }, { choice, messageBytesMax, warn: () => {} });
      await assert.rejects(other.listen("127.0.0.1", port));
      await other.close().catch(() => {});
    });
  });
}
