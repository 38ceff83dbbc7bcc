/** What goes over the wire beside what handlers see: where an answer ends, and requests that nobody may see. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "undici";
import { transports } from "#test/kit/transports.ts";
import { openTransport } from "./open_transport.ts";
import type { HttpRequest, HttpResponse, Transport } from "./transport.ts";

const asksOf = {
  python: [
    process.env.TEST_PYTHON ?? "python3",
    fileURLToPath(new URL("../../test/kit/sockets/kept_alive.py", import.meta.url)),
  ],
  go: ["go", "run", fileURLToPath(new URL("../../test/kit/sockets/kept_alive.go", import.meta.url))],
} as const;

/** False, or why not. */
function missing(program: string, args: readonly string[], reason: string): false | string {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return false;
  } catch {
    return reason;
  }
}
const noHttpx = missing(asksOf.python[0], ["-c", "import httpx"], "no Python with httpx");
const noGo = missing("go", ["version"], "no Go");

const head = "GET /a HTTP/1.1\r\nHost: x\r\n";
const post = "POST /a HTTP/1.1\r\nHost: x\r\n";
const chunks = "3\r\nabc\r\n0\r\n\r\n";

/** Requests that two readers could cut at different places: 400, closed, and seen by nobody. */
const ambiguous: Record<string, string> = {
  "a length beside a coding": `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
  "a coding beside a length": `${post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${chunks}`,
  "a length beside an empty coding": `${post}Content-Length: 4\r\nTransfer-Encoding:\r\n\r\nabcd`,
  "a coding that is not chunked": `${post}Transfer-Encoding: xchunked\r\n\r\n${chunks}`,
  "a coding before chunked": `${post}Transfer-Encoding: gzip, chunked\r\n\r\n${chunks}`,
  "a coding after chunked": `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunks}`,
  "two lengths": `${post}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`,
  "the same length twice": `${post}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd`,
  "a list of lengths": `${post}Content-Length: 4, 4\r\n\r\nabcd`,
  "a signed length": `${post}Content-Length: +4\r\n\r\nabcd`,
  "a negative length": `${post}Content-Length: -1\r\n\r\nabcd`,
  "a hexadecimal length": `${post}Content-Length: 0x4\r\n\r\nabcd`,
  "two hosts": `${head}Host: y\r\n\r\n`,
  "an upgrade with a body": `${head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 4\r\n\r\nabcd`,
  "an upgrade of a connection that closes": `${head}Connection: close\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
};

/** Heads that are malformed by themselves. `uws` hands none of them over, and waits for what never comes. */
const malformed: Record<string, string> = {
  "a bare LF after a field": `GET /a HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n`,
  "a bare LF at the end": `${head}\n`,
  "a folded field": `${head}X-A: b\r\n c\r\n\r\n`,
  "a space before the colon": `${head}X-A : b\r\n\r\n`,
  "a NUL": `${head}X-A: a\0b\r\n\r\n`,
  "a bare CR": `${head}X-A: a\rb\r\n\r\n`,
};

for (const { transport: choice, skip: noTransport } of transports) {
  describe(`HTTP on the wire of ${choice}`, { skip: noTransport }, () => {
    let transport: Transport;
    let port: number;
    let seen: string[];
    let onRequest: (request: HttpRequest, response: HttpResponse) => void | Promise<void>;

    before(async () => {
      transport = await openTransport(
        {
          onRequest: (request, response) => {
            seen.push(request.path);
            return onRequest(request, response);
          },
          onUpgrade: (upgrade) => {
            seen.push(upgrade.head.path);
            upgrade.refuse(503, [], "");
          },
        },
        { choice, messageBytesMax: 1024, warn: () => {} },
      );
      port = await transport.listen("127.0.0.1", 0);
    });
    after(() => transport.close());
    beforeEach(() => {
      seen = [];
      onRequest = answerByPath;
    });

    /** What a raw client hears of what it writes, up to the end of the connection or of `until`. */
    async function exchange(bytes: string, until?: (heard: string) => boolean): Promise<string> {
      const client = connect(port, "127.0.0.1");
      let heard = "";
      client.setEncoding("latin1").on("error", () => {});
      client.write(bytes, "latin1");
      const closed = once(client, "close");
      client.on("data", (data: string) => {
        heard += data;
        if (until?.(heard)) client.destroy();
      });
      await closed;
      return heard;
    }

    it("tells no length of a 204 or a 304, sent or streamed", async () => {
      for (const [path, status, length] of [
        ["/204", 204, undefined],
        ["/204-of-7", 204, undefined],
        ["/304", 304, undefined],
        ["/304-of-7", 304, undefined],
        ["/some", 200, "4"],
      ] as const) {
        for (const way of ["", "?streamed"]) {
          if (way && path === "/some") continue;
          // The second answer shows where the first one ends.
          const heard = await exchange(
            `GET ${path}${way} HTTP/1.1\r\nHost: x\r\n\r\nGET /some HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
          );
          const [first = "", ...rest] = heard.split("\r\n\r\n");
          assert.match(first, new RegExp(`^HTTP/1.1 ${status} `));
          assert.equal(/^content-length: (.*)$/im.exec(first)?.[1], length, `${path}${way}`);
          assert.doesNotMatch(first, /transfer-encoding/i);
          const second = path === "/some" ? rest.join("\r\n\r\n").slice("some".length) : rest.join("\r\n\r\n");
          assert.match(second, /^HTTP\/1.1 200 [\s\S]*some$/, `${path}${way}`);
        }
      }
    });

    it("tells the length that an answer to HEAD leaves out, where it is known", async () => {
      for (const [path, length] of [
        ["/some", "4"],
        ["/some?streamed", undefined],
        ["/7?streamed", "7"],
      ] as const) {
        const one = `HEAD ${path} HTTP/1.1\r\nHost: x\r\n`;
        // The second answer shows that the connection has come through the first.
        const heard = await exchange(`${one}\r\n${one}Connection: close\r\n\r\n`);
        const lengths = [...heard.matchAll(/^content-length: (.*)$/gim)].map(([, value]) => value);
        assert.deepEqual(lengths, length === undefined ? [] : [length, length], path);
        assert.equal(heard.match(/HTTP\/1.1 200/g)?.length, 2, path);
      }
    });

    it("is understood by undici over one connection", async () => {
      const client = new Client(`http://127.0.0.1:${port}`);
      let connections = 0;
      client.on("connect", () => {
        connections += 1;
      });
      try {
        for (const path of ["/204", "/some", "/304", "/304-of-7", "/204", "/some"]) {
          const answer = await client.request({ method: "GET", path });
          assert.equal(await answer.body.text(), path === "/some" ? "some" : "");
        }
      } finally {
        await client.close();
      }
      assert.equal(connections, 1);
    });

    for (const [name, skip] of [
      ["python", noHttpx],
      ["go", noGo],
    ] as const) {
      it(`is understood by ${name} over one connection`, { skip }, async () => {
        const [program, ...args] = asksOf[name];
        const { stdout } = await promisify(execFile)(program, [...args, `http://127.0.0.1:${port}`]);
        const answers = stdout.trim().split("\n");
        assert.deepEqual(
          answers.map((line) => line.replace(/ \d+$/, "")),
          ["204 - -", "200 4 some", "304 - -", "304 - -", "204 - -", "200 4 some"],
        );
        assert.equal(new Set(answers.map((line) => line.split(" ").at(-1))).size, 1, "one connection");
      });
    }

    for (const [name, bytes] of Object.entries(ambiguous)) {
      it(`refuses ${name} and closes`, async () => {
        const heard = await exchange(bytes);
        assert.match(heard, /^HTTP\/1.1 400 /);
        assert.equal(heard.match(/HTTP\/1.1 /g)?.length, 1);
        assert.deepEqual(seen, []);
      });
    }

    it("never hears what comes behind an ambiguous request", async () => {
      const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
      for (const bytes of Object.values(ambiguous)) await exchange(`${bytes}${smuggled}`);
      assert.deepEqual(seen, []);
    });

    for (const [name, bytes] of Object.entries(malformed)) {
      it(`hands over nothing of ${name}`, async () => {
        // What the library does with the rest of such a connection is its own; a healthy one goes on beside it.
        const ours = connect(port, "127.0.0.1");
        ours.setEncoding("latin1").on("error", () => {});
        let heard = "";
        ours.on("data", (data: string) => {
          heard += data;
        });
        ours.write(bytes, "latin1");
        const closed = once(ours, "close");
        if (choice === "ws") {
          await closed;
          assert.match(heard, /^HTTP\/1.1 400 /);
        }
        const behind = "GET /behind HTTP/1.1\r\nHost: x\r\n\r\n";
        if (choice === "uws") ours.write(behind);
        await exchange(`${head}\r\n`, (text) => text.includes("\r\n\r\n"));
        assert.deepEqual(seen, ["/a"]);
        ours.destroy();
        await closed;
        assert.doesNotMatch(heard, /^HTTP\/1.1 2/);
      });
    }
  });
}

/** `/{status}` or `/{status}-of-{length}`; `?streamed` in pieces. */
function answerByPath({ path, query }: HttpRequest, response: HttpResponse): void {
  const [, status, length] = /^\/([23]\d\d)(?:-of-(\d+))?$/.exec(path) ?? [];
  const announced = length ?? (path === "/7" ? "7" : undefined);
  const headers = announced === undefined ? [] : ([["content-length", announced]] as const);
  if (query === "streamed") response.stream(Number(status ?? 200), headers).end();
  else response.send(Number(status ?? 200), headers, status === undefined ? "some" : "");
}
