import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#test/kit/gateway_fixture.ts";
import type { HttpResponse, ResponseStream } from "../transport/transport.ts";
import { Relay } from "./relay.ts";

/** A client that takes nothing until it is told to. */
class StandingClient implements HttpResponse, ResponseStream {
  readonly written: Uint8Array[] = [];
  isEnded = false;
  isDestroyed = false;
  takes = false;
  #drained: () => void = () => undefined;

  send(): void {
    assert.fail("the answer comes in pieces");
  }
  stream(): ResponseStream {
    return this;
  }
  write(chunk: Uint8Array): boolean {
    this.written.push(chunk);
    return this.takes;
  }
  onWritable(listener: () => void): void {
    this.#drained = listener;
  }
  end(): void {
    this.isEnded = true;
  }
  destroy(): void {
    this.isDestroyed = true;
  }
  drain(): void {
    this.takes = true;
    this.#drained();
  }
}

/** An answer of so many pieces of 64 KiB, and how many were read of it. */
function answerOf(pieces: number) {
  const seen = { read: 0, isLetGo: false };
  async function* body() {
    for (; seen.read < pieces; seen.read += 1) yield new Uint8Array(64 * 1024).fill(seen.read);
  }
  const destroy = () => {
    seen.isLetGo = true;
  };
  return { seen, answer: { status: 200, headers: [], body: Object.assign(body(), { destroy }) } };
}

const requester = { address: "a", tenant: "t", kind: "other" } as const;
const settled = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe("an answer that is handed on", () => {
  it("leaves the api at once, though its client takes nothing, and arrives whole when it does", async () => {
    const relay = new Relay(new ManualClock());
    const client = new StandingClient();
    const { seen, answer } = answerOf(10);
    let isRead = false;
    const to = { response: client, requester, signal: new AbortController().signal };
    const sent = relay.send(answer, to, () => {
      isRead = true;
    });
    await settled();
    assert.deepEqual([isRead, seen.read, client.written.length, client.isEnded], [true, 10, 1, false]);
    client.drain();
    await sent;
    assert.deepEqual(
      client.written.map((piece) => piece[0]),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert.equal(client.isEnded, true);
  });

  it("is read no further than a bound ahead of its client", async () => {
    const relay = new Relay(new ManualClock());
    const client = new StandingClient();
    const { seen, answer } = answerOf(1000);
    const abort = new AbortController();
    const sent = relay.send(answer, { response: client, requester, signal: abort.signal }, () => undefined);
    await settled();
    assert.ok(seen.read < 20, `${seen.read} pieces of 64 KiB`);
    abort.abort();
    await sent;
    assert.equal(seen.isLetGo, true);
  });

  it("is cut off a client that takes nothing for half a minute", async () => {
    const clock = new ManualClock();
    const relay = new Relay(clock);
    const client = new StandingClient();
    const { seen, answer } = answerOf(3);
    const to = { response: client, requester, signal: new AbortController().signal };
    const sent = relay.send(answer, to, () => undefined);
    await settled();
    clock.advance(29_000);
    assert.equal(client.isDestroyed, false);
    clock.advance(2000);
    assert.equal(client.isDestroyed, true);
    await sent;
    assert.equal(seen.isLetGo, true);
  });
});
