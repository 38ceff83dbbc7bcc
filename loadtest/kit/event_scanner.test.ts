import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createdAtMs, EventScanner } from "./event_scanner.ts";

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrun-id: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
const frame = (id: number) =>
  `id: ${id}\nevent: content.delta\ndata: {"text":"\\nid: 99","created_at":"2026-01-01T00:00:00.00${id % 10}Z"}\n\n`;
const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

function response(ids: readonly number[], perChunk: number): string {
  let text = head + chunked("retry: 2000\n\n: connected\n\n");
  for (let i = 0; i < ids.length; i += perChunk) {
    text += chunked(
      ids
        .slice(i, i + perChunk)
        .map(frame)
        .join(""),
    );
  }
  return `${text}${chunked(": heartbeat\n\n")}0\r\n\r\n`;
}

function scan(text: string, cuts: readonly number[]) {
  const ids: number[] = [];
  const times: number[] = [];
  const scanner = new EventScanner({
    onEvent(id, bytes, at) {
      ids.push(id);
      times.push(createdAtMs(bytes, at));
    },
  });
  const bytes = Buffer.from(text);
  const edges = [0, ...[...cuts].map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
  // One buffer for all, as a socket's: what was given is overwritten.
  const shared = Buffer.alloc(bytes.length);
  for (const [index, to] of edges.entries()) {
    const from = edges[index - 1] ?? 0;
    if (to === from) continue;
    bytes.copy(shared, 0, from, to);
    scanner.push(shared.subarray(0, to - from));
  }
  return { ids, times, scanner };
}

describe("the event scanner", () => {
  it("finds every event once, however the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(5000), { maxLength: 40 }),
        (count, perChunk, cuts) => {
          const expected = Array.from({ length: count }, (_, i) => i + 1);
          const { ids, times, scanner } = scan(response(expected, perChunk), cuts);
          assert.deepEqual(ids, expected);
          assert.deepEqual(
            times,
            expected.map((id) => Date.parse("2026-01-01T00:00:00Z") + (id % 10)),
          );
          assert.equal(scanner.gaps, 0);
          assert.equal(scanner.lastId, count);
          assert.ok(scanner.hasEnded);
        },
      ),
    );
  });

  it("counts an event that is missing, and one that comes twice", () => {
    assert.equal(scan(response([1, 2, 4], 1), []).scanner.gaps, 1);
    assert.equal(scan(response([1, 2, 2, 3], 4), []).scanner.gaps, 1);
  });

  it("does not count what is incomplete, and knows an answer that goes on", () => {
    const text = response([1, 2, 3], 1);
    const { ids, scanner } = scan(text.slice(0, text.lastIndexOf("\n\n\r\n") - 20), []);
    assert.deepEqual(ids, [1, 2]);
    assert.ok(!scanner.hasEnded);
  });
});
