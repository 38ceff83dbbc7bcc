/**
 * Reads an `ExportTraceServiceRequest` of OTLP 1.x from protobuf, field by field: numbers are those of
 * `opentelemetry/proto/{trace,common,resource}/v1`. By hand on protobufjs' reader, because decoding by
 * reflection makes each object twice. Unknown fields are skipped; a known one of another type is malformed.
 */
import protobuf from "protobufjs/minimal.js";
import { otlpLimits } from "#contracts/otlp.ts";
import {
  type Attributes,
  type AttributeValue,
  finite,
  MalformedOtlpError,
  newSpan,
  noAttributes,
  type OtlpEvent,
  type OtlpLink,
  type OtlpSpan,
  putAttribute,
  type ReceivedSpan,
  type ScopeOfSpans,
  storable,
  valuesMax,
} from "./otlp_span.ts";

class Reader extends protobuf.BufferReader {
  /** Of the span that is read. */
  valuesLeft = valuesMax;
}

const wire = { varint: 0, fixed64: 1, bytes: 2 } as const;

/** A field's number and wire type as its tag has them. */
const tag = (field: number, type: number) => field * 8 + type;

/**
 * The spans of a request, one by one, so that a long one need not be read at a stretch.
 * @throws MalformedOtlpError
 */
export function* protobufSpans(bytes: Uint8Array): Generator<ReceivedSpan> {
  const reader = new Reader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  try {
    while (reader.pos < reader.len) {
      if (at(reader, 1, "resource_spans")) yield* resourceSpans(reader, lengthEnd(reader));
    }
  } catch (error) {
    if (error instanceof MalformedOtlpError) throw error;
    throw new MalformedOtlpError(`Expected a protobuf ExportTraceServiceRequest: ${(error as Error).message}`);
  }
}

/** Reads a tag: true for `field` as bytes; skips any other field. */
function at(reader: Reader, field: number, name: string): boolean {
  const found = reader.uint32();
  if (found === tag(field, wire.bytes)) return true;
  if (found >>> 3 === field) throw new MalformedOtlpError(`Expected ${name} to be a message`);
  skip(reader, found);
  return false;
}

/** The known fields of a message, and of which wire type each is: any other type of them is malformed. */
function skip(reader: Reader, found: number, known?: ReadonlySet<number>): void {
  const field = found >>> 3;
  const type = found & 7;
  // Groups are no part of proto3, and nested ones a way to exhaust a reader's stack.
  if (field === 0 || type === 3 || type === 4 || known?.has(field)) {
    throw new MalformedOtlpError(`Unexpected protobuf tag ${found}`);
  }
  reader.skipType(type);
  if (reader.pos > reader.len) throw new RangeError("a field is longer than its message");
}

/** Where a message that starts here ends. */
function lengthEnd(reader: Reader): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError("a message is longer than what holds it");
  return end;
}

/** Reads the fields of the message that starts here until its end. */
function eachField(reader: Reader, onField: (found: number) => void): void {
  fieldsUntil(reader, lengthEnd(reader), onField);
}

function fieldsUntil(reader: Reader, end: number, onField: (found: number) => void): void {
  const outer = reader.len;
  // The reader refuses to read on beyond the message.
  reader.len = end;
  while (reader.pos < end) onField(reader.uint32());
  reader.len = outer;
}

function* resourceSpans(reader: Reader, end: number): Generator<ReceivedSpan> {
  const resource = noAttributes();
  const scopes: number[] = [];
  fieldsUntil(reader, end, (found) => {
    if (found === tag(1, wire.bytes)) readResource(reader, resource);
    else if (found === tag(2, wire.bytes)) {
      // Read below: the resource may stand behind its spans.
      scopes.push(reader.pos);
      reader.pos = lengthEnd(reader);
    } else skip(reader, found, resourceFields);
  });
  for (const start of scopes) {
    reader.pos = start;
    yield* scopeSpans(reader, lengthEnd(reader), resource);
  }
  reader.pos = end;
}

const resourceFields = new Set([1, 2]);

function readResource(reader: Reader, resource: Attributes): void {
  let count = 0;
  eachField(reader, (found) => {
    if (found !== tag(1, wire.bytes)) return skip(reader, found);
    readKeyValue(reader, resource, count);
    count += 1;
  });
}

function* scopeSpans(reader: Reader, end: number, resource: Attributes): Generator<ReceivedSpan> {
  const of: ScopeOfSpans = { resource, scope: "" };
  const spans: number[] = [];
  fieldsUntil(reader, end, (found) => {
    if (found === tag(1, wire.bytes)) of.scope = readScopeName(reader);
    else if (found === tag(2, wire.bytes)) {
      spans.push(reader.pos);
      reader.pos = lengthEnd(reader);
    } else skip(reader, found, resourceFields);
  });
  for (const start of spans) {
    reader.pos = start;
    yield { of, span: readSpan(reader) };
  }
  reader.pos = end;
}

function readScopeName(reader: Reader): string {
  let name = "";
  eachField(reader, (found) => {
    if (found === tag(1, wire.bytes)) name = storable(reader.string());
    else skip(reader, found);
  });
  return name;
}

const spanFields = new Set([1, 2, 4, 5, 7, 8, 9, 11, 13, 15]);

function readSpan(reader: Reader): OtlpSpan {
  const span = newSpan();
  let count = 0;
  reader.valuesLeft = valuesMax;
  eachField(reader, (found) => {
    switch (found) {
      case tag(1, wire.bytes):
        span.traceId = readHex(reader);
        return;
      case tag(2, wire.bytes):
        span.spanId = readHex(reader);
        return;
      case tag(4, wire.bytes):
        span.parentSpanId = readHex(reader);
        return;
      case tag(5, wire.bytes):
        span.name = storable(reader.string());
        return;
      case tag(7, wire.fixed64):
        span.startedUs = readMicroseconds(reader);
        return;
      case tag(8, wire.fixed64):
        span.endedUs = readMicroseconds(reader);
        return;
      case tag(9, wire.bytes):
        span.dropped += readKeyValue(reader, span.attributes, count);
        count += 1;
        return;
      case tag(10, wire.varint):
      case tag(12, wire.varint):
      case tag(14, wire.varint):
        span.dropped += reader.uint32();
        return;
      case tag(11, wire.bytes):
        if (span.events.length < otlpLimits.eventsMax) span.events.push(readEvent(reader));
        else span.dropped += passOver(reader);
        return;
      case tag(13, wire.bytes):
        if (span.links.length < otlpLimits.linksMax) span.links.push(readLink(reader));
        else span.dropped += passOver(reader);
        return;
      case tag(15, wire.bytes):
        readStatus(reader, span);
        return;
      default:
        skip(reader, found, spanFields);
    }
  });
  return span;
}

function passOver(reader: Reader): 1 {
  reader.pos = lengthEnd(reader);
  return 1;
}

function readHex(reader: Reader): string {
  const end = lengthEnd(reader);
  const hex = (reader.buf as Buffer).toString("hex", reader.pos, Math.min(end, reader.pos + 32));
  reader.pos = end;
  return hex;
}

/** A `fixed64` of nanoseconds, as µs: exact, as far as a double goes. */
function readMicroseconds(reader: Reader): number {
  const low = reader.fixed32();
  const high = reader.fixed32();
  return microsecondsOf(high, low);
}

/** Of nanoseconds as two halves of 32 bits. */
export function microsecondsOf(high: number, low: number): number {
  // high * 2^32 ns = high * 4294967.296 µs: the whole and the part apart, so that nothing is rounded on the way.
  return high * 4_294_967 + Math.floor((high * 296 + low) / 1000);
}

const eventFields = new Set([1, 2, 3]);

function readEvent(reader: Reader): OtlpEvent {
  const event: OtlpEvent = { name: "", atUs: 0, attributes: noAttributes() };
  let count = 0;
  eachField(reader, (found) => {
    if (found === tag(1, wire.fixed64)) event.atUs = readMicroseconds(reader);
    else if (found === tag(2, wire.bytes)) event.name = storable(reader.string());
    else if (found === tag(3, wire.bytes)) {
      readKeyValue(reader, event.attributes, count);
      count += 1;
    } else skip(reader, found, eventFields);
  });
  return event;
}

const linkFields = new Set([1, 2, 4]);

function readLink(reader: Reader): OtlpLink {
  const link: OtlpLink = { traceId: "", spanId: "", attributes: noAttributes() };
  let count = 0;
  eachField(reader, (found) => {
    if (found === tag(1, wire.bytes)) link.traceId = readHex(reader);
    else if (found === tag(2, wire.bytes)) link.spanId = readHex(reader);
    else if (found === tag(4, wire.bytes)) {
      readKeyValue(reader, link.attributes, count);
      count += 1;
    } else skip(reader, found, linkFields);
  });
  return link;
}

const statusFields = new Set([2, 3]);

function readStatus(reader: Reader, span: OtlpSpan): void {
  eachField(reader, (found) => {
    if (found === tag(2, wire.bytes)) span.statusMessage = storable(reader.string());
    else if (found === tag(3, wire.varint)) span.statusCode = reader.uint32();
    else skip(reader, found, statusFields);
  });
}

const pairFields = new Set([1, 2]);

/** @returns how many were dropped */
function readKeyValue(reader: Reader, into: Attributes, count: number, depth = 0): 0 | 1 {
  let key = "";
  let value: AttributeValue = null;
  eachField(reader, (found) => {
    if (found === tag(1, wire.bytes)) key = storable(reader.string());
    else if (found === tag(2, wire.bytes)) value = readAnyValue(reader, depth);
    else skip(reader, found, pairFields);
  });
  return putAttribute(into, count, key, value);
}

const valueFields = new Set([1, 2, 3, 4, 5, 6, 7]);

function readAnyValue(reader: Reader, depth: number): AttributeValue {
  let value: AttributeValue = null;
  eachField(reader, (found) => {
    switch (found) {
      case tag(1, wire.bytes):
        value = storable(reader.string());
        return;
      case tag(2, wire.varint):
        value = reader.bool();
        return;
      case tag(3, wire.varint):
        value = readInt64(reader);
        return;
      case tag(4, wire.fixed64):
        value = finite(reader.double());
        return;
      case tag(5, wire.bytes):
        value = readArray(reader, depth + 1);
        return;
      case tag(6, wire.bytes):
        value = readMap(reader, depth + 1);
        return;
      case tag(7, wire.bytes):
        value = Buffer.from(reader.bytes()).toString("base64");
        return;
      default:
        skip(reader, found, valueFields);
    }
  });
  return value;
}

function readInt64(reader: Reader): number | string {
  // A Long where the package `long` is there, which it is: protobufjs brings it.
  const { high, low } = reader.int64() as unknown as { high: number; low: number };
  const number = high * 4_294_967_296 + (low >>> 0);
  return Number.isSafeInteger(number) ? number : String((BigInt(high) << 32n) | BigInt(low >>> 0));
}

function readArray(reader: Reader, depth: number): AttributeValue {
  const values: AttributeValue[] = [];
  eachValue(reader, depth, () => values.push(readAnyValue(reader, depth)));
  return values;
}

function readMap(reader: Reader, depth: number): AttributeValue {
  const map = noAttributes();
  let count = 0;
  eachValue(reader, depth, () => {
    readKeyValue(reader, map, count, depth);
    count += 1;
  });
  return map;
}

const onlyField = new Set([1]);

/** What lies deeper than we go, and more values than a span may hold, is passed over. */
function eachValue(reader: Reader, depth: number, onValue: () => void): void {
  if (depth > otlpLimits.depthMax) {
    passOver(reader);
    return;
  }
  eachField(reader, (found) => {
    if (found !== tag(1, wire.bytes)) return skip(reader, found, onlyField);
    reader.valuesLeft -= 1;
    if (reader.valuesLeft >= 0) onValue();
    else passOver(reader);
  });
}
