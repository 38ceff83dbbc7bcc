import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { cannonResult, shoot } from "./autocannon.ts";

describe("autocannon", () => {
  it("is understood", () => {
    const json = {
      duration: 2,
      errors: 1,
      timeouts: 2,
      non2xx: 3,
      "2xx": 1000,
      latency: { p50: 4, p99: 9, max: 11 },
    };
    assert.deepEqual(cannonResult(`a line before\n${JSON.stringify(json)}\n`), {
      requestsPerS: 500,
      p50Ms: 4,
      p99Ms: 9,
      maxMs: 11,
      failures: 6,
    });
    assert.throws(() => cannonResult("Usage: autocannon"));
  });

  it("sends what it is told to, and failures are counted", async () => {
    const heard: string[] = [];
    const server = createServer((request, response) => {
      request.setEncoding("utf8").on("data", (text: string) => {
        if (heard.length === 0) heard.push(`${request.method} ${request.url} ${request.headers["x-who"]} ${text}`);
      });
      request.on("end", () => response.writeHead(503).end());
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/asked?a=1`;
    const shot = {
      url,
      method: "POST",
      headers: { "x-who": "me=you" },
      body: '{"a":1}',
      connections: 1,
      seconds: 1,
    } as const;
    const { requestsPerS, failures } = await shoot(shot);
    server.close();
    assert.deepEqual(heard, ['POST /asked?a=1 me=you {"a":1}']);
    assert.equal(requestsPerS, 0);
    assert.ok(failures > 0);
  });
});
