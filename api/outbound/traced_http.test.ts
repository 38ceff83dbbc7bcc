import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { fetch } from "undici";
import { createGuardedHttp } from "./guarded_http.ts";
import { callerTraceOf, tracedHttp, traceparentOf } from "./traced_http.ts";

const traceId = "0af76519-16cd-43dd-8448-eb211c80319c";
const traceparent = traceparentOf(traceId, "b7ad6b7169203331");

describe("a request within a trace", () => {
  it("names it, sent by us or by a vendor's client, unless it names one itself", async () => {
    const heard: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      heard.push(request.headers);
      response.end("ok");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const plain = createGuardedHttp({ allowPrivateAddresses: true });
    const http = tracedHttp(plain, traceparent);
    try {
      await http.send(url, { method: "GET", responseBytesMax: 10 });
      await http.send(url, { method: "GET", headers: { Traceparent: "own" }, responseBytesMax: 10 });
      await fetch(url, { dispatcher: http.dispatcher, headers: { "x-own": "kept" } }).then((answer) => answer.text());
      await plain.send(url, { method: "GET", responseBytesMax: 10 });
    } finally {
      await http.close();
      server.close();
    }
    assert.deepEqual(
      heard.map((headers) => headers.traceparent),
      ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "own", traceparent, undefined],
    );
    assert.equal(heard[2]?.["x-own"], "kept");
  });

  it("is read as the standard writes it, and not otherwise", () => {
    const read = (value: string) => callerTraceOf(new Headers({ traceparent: value }));
    const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
    assert.deepEqual(read(traceparent), caller);
    assert.deepEqual(read(`${traceparent.replace("00-", "01-")}-more`), caller, "of a later version");
    const zero = (digits: number) => "0".repeat(digits);
    for (const bad of [
      "",
      "nonsense",
      traceparent.toUpperCase(),
      traceparent.replace("00-", "ff-"),
      traceparentOf(zero(32), "b7ad6b7169203331"),
      traceparentOf(traceId, zero(16)),
    ]) {
      assert.equal(read(bad), undefined, bad);
    }
  });
});
