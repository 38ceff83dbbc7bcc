import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createMemoryBus } from "#bus/memory_bus.ts";
import type { LoggedEvent } from "#contracts/internal_runs.ts";
import { runLimits } from "#contracts/run_event.ts";
import { silentLog } from "#test/kit/gateway_fixture.ts";
import type { ResponseStream } from "../transport/transport.ts";
import { RunFeed } from "./run_feed.ts";
import type { RunLog } from "./run_log.ts";
import { eventFrame } from "./sse_frame.ts";
import { StreamReader } from "./stream_reader.ts";

/** A connection that takes as many writes as it is given room for. */
class ScriptedConnection implements ResponseStream {
  readonly written: Buffer[] = [];
  isEnded = false;
  isDestroyed = false;
  #room = 0;
  #drained: () => void = () => undefined;

  write(chunk: Uint8Array): boolean {
    assert.ok(!this.isEnded && !this.isDestroyed, "nothing is written after the end");
    this.written.push(Buffer.from(chunk));
    this.#room -= 1;
    return this.#room > 0;
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
  /** Takes so many more writes, the last of which pauses the reader. */
  drain(writes: number): void {
    this.#room = writes;
    this.#drained();
  }
  get text(): string {
    return Buffer.concat(this.written).toString();
  }
}

const lifeMs = 3_600_000;
const runId = "00000000-0000-4000-8000-000000000000";
const eventsOf = (sizes: readonly number[]): LoggedEvent[] =>
  sizes.map((size, i) => ({
    id: i + 1,
    type: i === sizes.length - 1 ? "run.succeeded" : "content.delta",
    json: JSON.stringify("x".repeat(size)),
  }));
const framesOf = (events: readonly LoggedEvent[]) => events.map((event) => Buffer.from(eventFrame(event).bytes));

const metrics = { caughtUp() {}, delivered() {} };

/** A reader over a log of these events. `paused` waits until it has filled what room there is. */
function openReader(events: readonly LoggedEvent[], pageEvents = 3) {
  const log: RunLog = {
    read: async (_, after) => ({
      events: events.slice(after, after + pageEvents),
      status: "succeeded",
      last_event_id: events.length,
    }),
    positions: async () => new Map(),
    abandon: async () => undefined,
    answer: async () => assert.fail("nobody waits"),
    close: async () => undefined,
  };
  const feed = new RunFeed(runId, 0, { bus: createMemoryBus(), log, logger: silentLog, metrics });
  const connection = new ScriptedConnection();
  const ends: { completed: boolean }[] = [];
  const reader = new StreamReader({
    feed,
    stream: connection,
    cursor: 0,
    types: [],
    endsAtMs: performance.now() + lifeMs,
    onEnd: (end) => ends.push(end),
    onError: (error) => assert.fail(String(error)),
  });
  const paused = async () => {
    while (!reader.isPaused && !connection.isEnded) await new Promise((resolve) => setImmediate(resolve));
  };
  return { feed, connection, reader, ends, paused };
}

describe("a reader of a run's stream", () => {
  it("sends every byte once and in order, wherever its connection pauses", async () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 15_000, max: 70_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(size, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
        async (sizes, rooms) => {
          const events = eventsOf(sizes);
          const { feed, connection, ends, paused } = openReader(events);
          feed.fill();
          for (let i = 0; !connection.isEnded; i += 1) {
            connection.drain(rooms[i % rooms.length] ?? 1);
            await paused();
            assert.ok(i < 1000, "it goes on whenever there is room");
          }
          assert.ok(connection.text === Buffer.concat(framesOf(events)).toString());
          assert.deepEqual(ends, [{ completed: true }]);
          await feed.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  it("leaves at most one write in a connection that takes nothing more, however large the event", async () => {
    const { feed, connection, paused } = openReader(eventsOf([runLimits.eventBytesMax, 10]));
    connection.drain(1);
    feed.fill();
    await paused();
    assert.deepEqual(
      connection.written.map(({ length }) => length),
      [8 * 1024],
    );
    await feed.close();
  });

  it("says nothing of its own in the middle of an event: no heartbeat, no farewell", async () => {
    const { feed, connection, reader, ends, paused } = openReader(eventsOf([100_000, 10]));
    connection.drain(2);
    feed.fill();
    await paused();
    const before = connection.text;
    reader.tick(performance.now() + 1000);
    reader.leave("drain");
    assert.equal(connection.text, before);
    assert.ok(connection.isEnded);
    assert.deepEqual(ends, [{ completed: false }]);
    await feed.close();
  });

  it("says that it lives while nothing happens, and sends its client round at the end of its time", async () => {
    const { feed, connection, reader, ends } = openReader([]);
    connection.drain(10);
    const nowMs = performance.now();
    reader.tick(nowMs + (runLimits.heartbeatS - 1) * 1000);
    assert.equal(connection.text, "");
    reader.tick(nowMs + (runLimits.heartbeatS + 1) * 1000);
    assert.equal(connection.text, ": heartbeat\n\n");
    reader.tick(nowMs + lifeMs + 1000);
    assert.match(connection.text, /retry: 500\n\nevent: stream\.closing\ndata: \{"reason":"max_age"\}\n\n$/);
    assert.ok(connection.isEnded);
    assert.deepEqual(ends, [{ completed: false }]);
    await feed.close();
  });

  it("says farewell between events, and is cut after half a minute of nothing taken", async () => {
    const leaving = openReader(eventsOf([10, 20_000, 10]));
    leaving.connection.drain(1);
    leaving.feed.fill();
    await leaving.paused();
    leaving.reader.leave("drain");
    assert.match(leaving.connection.text, /\n\nretry: 500\n\nevent: stream\.closing\ndata: \{"reason":"drain"\}\n\n$/);
    await leaving.feed.close();

    const stuck = openReader(eventsOf([10, 20_000, 10]));
    stuck.connection.drain(1);
    stuck.feed.fill();
    await stuck.paused();
    const nowMs = performance.now();
    stuck.reader.tick(nowMs + (runLimits.stalledReaderS - 1) * 1000);
    assert.equal(stuck.connection.isDestroyed, false);
    stuck.reader.tick(nowMs + runLimits.stalledReaderS * 1000);
    assert.equal(stuck.connection.isDestroyed, true);
    await stuck.feed.close();
  });
});
