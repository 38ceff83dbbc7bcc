import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { BatchWriter, readBatch } from "./batch.ts";

describe("batch", () => {
  const record = fc.oneof(
    fc.record({
      kind: fc.constant(1),
      session: fc.nat(1e6),
      value: fc.double({ noNaN: true }),
      bytes: fc.uint8Array({ maxLength: 3000 }),
    }),
    fc.record({ kind: fc.constant(2), session: fc.nat(1e6), object: fc.jsonValue() }),
    fc.record({ kind: fc.constant(3), session: fc.nat(1e6), value: fc.double({ noNaN: true }) }),
  );

  it("gives every record back, in order, over any number of batches of one writer", () => {
    fc.assert(
      fc.property(fc.array(fc.array(record, { maxLength: 30 }), { maxLength: 4 }), (batches) => {
        const writer = new BatchWriter();
        for (const records of batches) {
          for (const item of records) {
            if ("bytes" in item) writer.bytes(item.kind, item.session, item.value, item.bytes);
            else if ("object" in item) writer.object(item.kind, item.session, item.object);
            else writer.value(item.kind, item.session, item.value);
          }
          const read: unknown[] = [];
          readBatch(structuredClone(writer.take()), (kind, session, value, bytes, object) => {
            if (kind === 1) read.push({ kind, session, value, bytes: Uint8Array.from(bytes) });
            else read.push(kind === 2 ? { kind, session, object } : { kind, session, value });
            assert.equal(bytes.byteOffset % 8, 0, "samples can be read in place");
          });
          assert.deepEqual(read, structuredClone(records));
        }
      }),
    );
  });

  it("copies bytes when they are written, so that a socket may use its buffer again", () => {
    const writer = new BatchWriter();
    const bytes = Uint8Array.of(1, 2, 3);
    writer.bytes(1, 1, 0, bytes);
    bytes.fill(9);
    readBatch(writer.take(), (_kind, _session, _value, read) => assert.deepEqual([...read], [1, 2, 3]));
  });

  it("is read whatever the length of the batch before, also when it only says what was handled", () => {
    for (let length = 3200; length < 3300; length += 1) {
      const writer = new BatchWriter();
      writer.bytes(1, 1, 0, new Uint8Array(length));
      writer.take();
      writer.handled(10);
      readBatch(writer.take(), () => assert.fail("no record was written"));
    }
  });

  it("is empty until something is written or handled", () => {
    const writer = new BatchWriter();
    assert.ok(writer.isEmpty);
    writer.handled(0);
    assert.ok(writer.isEmpty);
    writer.handled(10);
    assert.ok(!writer.isEmpty);
    assert.equal(writer.take().handledBytes, 10);
    assert.ok(writer.isEmpty);
  });
});
