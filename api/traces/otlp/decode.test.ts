import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import protobuf from "protobufjs/minimal.js";
import { otlpLimits } from "#contracts/otlp.ts";
import { BodyTooLargeError, decodeExport, type ExportBody, type Rejected } from "./decode.ts";
import { MalformedOtlpError } from "./otlp_span.ts";
import type { MappedSpan } from "./semantics.ts";

const nowMs = Date.UTC(2026, 10, 22);
const nanos = (ms: number) => String(BigInt(ms) * 1_000_000n);
const plain = {
  traceId: "5b8efff798038103d269b633813fc60c",
  spanId: "eee19b7ec3c1b174",
  name: "chat",
  startTimeUnixNano: nanos(nowMs),
  endTimeUnixNano: String(BigInt(nanos(nowMs)) + 1_234_567n),
};

const inJson = (...spans: object[]) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });
const bytesOf = (body: unknown) => new TextEncoder().encode(JSON.stringify(body));

function decoded(body: Partial<ExportBody> & Pick<ExportBody, "bytes">): { spans: MappedSpan[]; rejected: Rejected } {
  const spans: MappedSpan[] = [];
  const iterator = decodeExport({ encoding: "json", isGzip: false, nowMs, ...body });
  for (;;) {
    const next = iterator.next();
    if (next.done) return { spans, rejected: next.value };
    spans.push(next.value);
  }
}

/** A message of one field of bytes: the shape of all that holds spans. */
const message = (field: number, bytes: Uint8Array) =>
  protobuf.Writer.create()
    .uint32(field * 8 + 2)
    .bytes(bytes)
    .finish();
const inProtobuf = (span: Uint8Array) => message(1, message(2, message(2, span)));
const plainInProtobuf = () =>
  protobuf.Writer.create()
    .uint32(0x0a)
    .bytes(Buffer.from(plain.traceId, "hex"))
    .uint32(0x12)
    .bytes(Buffer.from(plain.spanId, "hex"))
    .uint32(0x39)
    .fixed64(nowMs * 1e6);

describe("the body of an export request", () => {
  it("is read with its ids, its times to the microsecond, and who sent it", () => {
    const body = {
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "desk" } }] },
          scopeSpans: [{ scope: { name: "agent", unknown: 1 }, spans: [{ ...plain, future: true }] }],
        },
      ],
    };
    const [mapped] = decoded({ bytes: bytesOf(body) }).spans;
    assert.equal(mapped?.traceId, plain.traceId);
    assert.equal(mapped.span.span_id, plain.spanId);
    assert.equal(mapped.span.parent_span_id, null);
    assert.equal(mapped.span.started_at.getTime(), nowMs);
    assert.equal(mapped.span.duration_ms, 1.234);
    assert.deepEqual({ ...mapped.span.attributes }, { "otel.scope.name": "agent", "service.name": "desk" });
  });

  it("may be empty, and must be an export of spans otherwise", () => {
    assert.deepEqual(decoded({ bytes: bytesOf({}) }).spans, []);
    assert.deepEqual(decoded({ bytes: new Uint8Array(), encoding: "protobuf" }).spans, []);
    for (const body of [{ resourceLogs: [] }, [], null, "text", { resourceSpans: {} }, inJson({ ...plain, name: 1 })]) {
      assert.throws(() => decoded({ bytes: bytesOf(body) }), MalformedOtlpError, JSON.stringify(body));
    }
  });

  it("rejects spans one by one for their ids and times, and is refused where no span has ids", () => {
    const old = nanos(nowMs - (otlpLimits.daysBack + 1) * 86_400_000);
    const ahead = nanos(nowMs + (otlpLimits.daysAhead + 1) * 86_400_000);
    const bad = [
      { ...plain, traceId: "0".repeat(32) },
      { ...plain, spanId: "eee1" },
      { ...plain, parentSpanId: "zz" },
      { ...plain, startTimeUnixNano: old },
      { ...plain, endTimeUnixNano: ahead },
    ];
    for (const one of bad) {
      const { spans, rejected } = decoded({ bytes: bytesOf(inJson(one, plain)) });
      assert.deepEqual([spans.length, rejected.count], [1, 1], JSON.stringify(one));
      assert.match(rejected.reason ?? "", /^span "chat": Expected /);
    }
    assert.throws(() => decoded({ bytes: bytesOf(inJson({ ...plain, traceId: "" })) }), /no span has a valid traceId/);
  });

  it("is bounded without its gzip, to the byte", () => {
    const name = "n".repeat(otlpLimits.unpackedBytesMax - bytesOf(inJson({ ...plain, name: "" })).length);
    const fits = gzipSync(bytesOf(inJson({ ...plain, name })));
    assert.equal(decoded({ bytes: fits, isGzip: true }).spans.length, 1);
    const bomb = gzipSync(bytesOf(inJson({ ...plain, name: `${name}n` })));
    assert.throws(() => decoded({ bytes: bomb, isGzip: true }), BodyTooLargeError);
    assert.throws(() => decoded({ bytes: bytesOf({}), isGzip: true }), MalformedOtlpError);
  });

  it("keeps numbers of 64 bits, text without U+0000, and lists no deeper than their bound", () => {
    const attributes = [
      { key: "big", value: { intValue: "9007199254740993" } },
      { key: "small", value: { intValue: "-7" } },
      { key: "zero\0", value: { stringValue: "a\0b\ud800" } },
      { key: "nan", value: { doubleValue: "NaN" } },
      { key: "__proto__", value: { boolValue: true } },
    ];
    let deep: object = { stringValue: "deep" };
    for (let level = 0; level <= otlpLimits.depthMax; level += 1) deep = { arrayValue: { values: [deep] } };
    const body = inJson({ ...plain, attributes: [...attributes, { key: "deep", value: deep }] });
    const { attributes: kept } = decoded({ bytes: bytesOf(body) }).spans[0]?.span ?? assert.fail();
    assert.equal(kept.big, "9007199254740993");
    assert.equal(kept.small, -7);
    assert.equal(kept["zero\uFFFD"], "a\uFFFDb\uFFFD");
    assert.equal(kept.nan, "NaN");
    assert.equal(Object.entries(kept).find(([name]) => name === "__proto__")?.[1], true);
    assert.equal(JSON.stringify(kept.deep), `${"[".repeat(otlpLimits.depthMax)}null${"]".repeat(otlpLimits.depthMax)}`);
  });

  it("is read from protobuf with its resource behind its spans, and with fields that nobody knows", () => {
    const value = protobuf.Writer.create().uint32(0x18).int64(-1).finish();
    const pair = protobuf.Writer.create().uint32(0x0a).string("n").uint32(0x12).bytes(value).finish();
    const span = plainInProtobuf().uint32(0x7a8).uint32(5).finish();
    const resource = message(1, message(1, pair));
    const ofResource = Buffer.concat([message(2, message(2, span)), resource]);
    const { spans } = decoded({ bytes: message(1, ofResource), encoding: "protobuf" });
    assert.equal(spans[0]?.traceId, plain.traceId);
    assert.equal(spans[0].span.attributes.n, -1);
  });

  it("is refused where protobuf ends early, has groups, or a field of another type", () => {
    const whole = inProtobuf(plainInProtobuf().finish());
    for (let length = 1; length < whole.length; length += 1) {
      const bytes = whole.subarray(0, length);
      assert.throws(() => decoded({ bytes, encoding: "protobuf" }), MalformedOtlpError, `${length} bytes`);
    }
    const logs = inProtobuf(protobuf.Writer.create().uint32(0x09).fixed64(1).finish());
    const group = inProtobuf(plainInProtobuf().uint32(0x7ab).finish());
    for (const bytes of [logs, group])
      assert.throws(() => decoded({ bytes, encoding: "protobuf" }), MalformedOtlpError);
  });

  it("is never anything but read, refused or too large, whatever its bytes are", () => {
    const json = bytesOf(
      inJson({ ...plain, attributes: [{ key: "k", value: { kvlistValue: { values: [] } } }], events: [{ name: "e" }] }),
    );
    const seeds = { json, protobuf: inProtobuf(plainInProtobuf().finish()) };
    const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }), isInserted: fc.boolean() });
    const mutated = (bytes: Uint8Array, changes: readonly { at: number; byte: number; isInserted: boolean }[]) =>
      changes.reduce((before, { at, byte, isInserted }) => {
        const place = at % before.length;
        return Uint8Array.from([...before.subarray(0, place), byte, ...before.subarray(place + (isInserted ? 0 : 1))]);
      }, bytes);
    const property = fc.property(
      fc.constantFrom("json" as const, "protobuf" as const),
      fc.array(change, { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      (encoding, changes, isNoise) => {
        const bytes = isNoise ? Uint8Array.from(changes, ({ byte }) => byte) : mutated(seeds[encoding], changes);
        try {
          decoded({ bytes, encoding });
        } catch (error) {
          assert.ok(error instanceof MalformedOtlpError, String((error as Error).stack));
        }
      },
    );
    fc.assert(property, { numRuns: 3000 });
  });
});
