import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventStream } from "./event_stream.ts";

async function read<T>(stream: EventStream<T>, onEvent: (event: T) => void = () => {}): Promise<T[]> {
  const events: T[] = [];
  for await (const event of stream) {
    events.push(event);
    onEvent(event);
  }
  return events;
}

describe("event stream", () => {
  it("gives events in order, those from before it is read and those after", async () => {
    const stream = new EventStream<number>();
    stream.put(1);
    const all = read(stream, (event) => event < 3 && stream.put(event + 2));
    await new Promise((resolve) => setImmediate(resolve));
    stream.put(2);
    stream.end();
    assert.deepEqual(await all, [1, 3, 2, 4]);
  });

  it("hands out what is there already, once", async () => {
    const stream = new EventStream<number>();
    for (const event of [1, 2]) stream.put(event);
    assert.deepEqual([...stream.ready()], [1, 2]);
    stream.put(3);
    stream.end();
    assert.deepEqual(await read(stream), [3]);
  });

  it("wakes its reader for an event that comes at any moment", async () => {
    for (let turns = 0; turns < 30; turns += 1) {
      const stream = new EventStream<number>();
      const seen: number[] = [];
      void read(stream, (event) => seen.push(event));
      stream.put(1);
      for (let turn = 0; turn < turns; turn += 1) await undefined;
      stream.put(2);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(seen, [1, 2], `put after ${turns} turns of the queue`);
    }
  });

  it("throws its reader the cause of its end, after the last event", async () => {
    const stream = new EventStream<number>();
    const seen: number[] = [];
    stream.put(1);
    stream.end(new Error("broken"));
    await assert.rejects(
      read(stream, (event) => seen.push(event)),
      /broken/,
    );
    assert.deepEqual(seen, [1]);
  });

  it("drops what waits when it is cancelled", async () => {
    const stream = new EventStream<number>();
    for (const event of [1, 2, 3]) stream.put(event);
    assert.deepEqual(await read(stream, () => stream.cancel()), [1]);
  });
});
