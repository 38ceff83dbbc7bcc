/**
 * Reads an `ExportTraceServiceRequest` from OTLP's JSON: hex ids, enums as numbers, 64-bit numbers as text or
 * as numbers, unknown fields ignored. A field of another type than it should have is malformed.
 */
import { otlpLimits } from "#contracts/otlp.ts";
import {
  type Attributes,
  type AttributeValue,
  finite,
  MalformedOtlpError,
  newSpan,
  noAttributes,
  type OtlpSpan,
  putAttribute,
  type ReceivedSpan,
  storable,
  valuesMax,
} from "./otlp_span.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** The spans of a request, one by one. @throws MalformedOtlpError */
export function* jsonSpans(bytes: Uint8Array): Generator<ReceivedSpan> {
  const body = objectOf(parsed(bytes), "the body");
  const isExport = Object.keys(body).length === 0 || body.resourceSpans !== undefined;
  if (!isExport) throw new MalformedOtlpError("Expected resourceSpans, as in an ExportTraceServiceRequest");
  for (const ofResource of objectsOf(body.resourceSpans, "resourceSpans")) {
    const resource = noAttributes();
    readAttributes(objectOf(ofResource.resource ?? {}, "resource").attributes, resource, { valuesLeft: valuesMax });
    for (const ofScope of objectsOf(ofResource.scopeSpans, "scopeSpans")) {
      const scope = textOf(objectOf(ofScope.scope ?? {}, "scope").name, "scope.name");
      const of = { resource, scope };
      for (const span of objectsOf(ofScope.spans, "spans")) yield { of, span: spanOf(span) };
    }
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new MalformedOtlpError("Expected JSON in UTF-8");
  }
}

function objectOf(value: unknown, name: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new MalformedOtlpError(`Expected ${name} to be an object`);
  }
  return value as JsonObject;
}

/** Absent and null are no elements, as proto3's JSON has it. */
function* objectsOf(value: unknown, name: string): Generator<JsonObject> {
  if (value === undefined || value === null) return;
  if (!Array.isArray(value)) throw new MalformedOtlpError(`Expected ${name} to be a list`);
  for (const one of value) yield objectOf(one, `each of ${name}`);
}

function textOf(value: unknown, name: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new MalformedOtlpError(`Expected ${name} to be text`);
  return cleaned(value);
}

/** Halves of surrogate pairs as U+FFFD, which is what protobuf's UTF-8 makes of them. */
const cleaned = (text: string) =>
  storable(/\p{Surrogate}/u.test(text) ? text.replace(/\p{Surrogate}/gu, "\uFFFD") : text);

function countOf(value: unknown, name: string): number {
  if (value === undefined || value === null) return 0;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < 0) {
    throw new MalformedOtlpError(`Expected ${name} to be a count`);
  }
  return number;
}

/** Nanoseconds as text, or as a number that JSON has rounded, as µs. */
function microsecondsOf(value: unknown, name: string): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "string" && /^\d{1,20}$/.test(value)) return Number(BigInt(value) / 1000n);
  if (typeof value === "number" && value >= 0 && value < 2 ** 64) return Math.floor(value / 1000);
  throw new MalformedOtlpError(`Expected ${name} to be nanoseconds since 1970`);
}

function spanOf(from: JsonObject): OtlpSpan {
  const span = newSpan();
  const budget = { valuesLeft: valuesMax };
  span.traceId = textOf(from.traceId, "traceId").toLowerCase();
  span.spanId = textOf(from.spanId, "spanId").toLowerCase();
  span.parentSpanId = textOf(from.parentSpanId, "parentSpanId").toLowerCase();
  span.name = textOf(from.name, "name");
  span.startedUs = microsecondsOf(from.startTimeUnixNano, "startTimeUnixNano");
  span.endedUs = microsecondsOf(from.endTimeUnixNano, "endTimeUnixNano");
  span.dropped = readAttributes(from.attributes, span.attributes, budget);
  for (const name of ["droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"]) {
    span.dropped += countOf(from[name], name);
  }
  for (const one of objectsOf(from.events, "events")) {
    if (span.events.length >= otlpLimits.eventsMax) span.dropped += 1;
    else {
      const attributes = noAttributes();
      readAttributes(one.attributes, attributes, budget);
      const atUs = microsecondsOf(one.timeUnixNano, "timeUnixNano");
      span.events.push({ name: textOf(one.name, "name"), atUs, attributes });
    }
  }
  for (const one of objectsOf(from.links, "links")) {
    if (span.links.length >= otlpLimits.linksMax) span.dropped += 1;
    else {
      const attributes = noAttributes();
      readAttributes(one.attributes, attributes, budget);
      const traceId = textOf(one.traceId, "traceId").toLowerCase();
      span.links.push({ traceId, spanId: textOf(one.spanId, "spanId").toLowerCase(), attributes });
    }
  }
  const status = objectOf(from.status ?? {}, "status");
  span.statusCode = countOf(status.code, "status.code");
  span.statusMessage = textOf(status.message, "status.message");
  return span;
}

/** What one span may still hold in lists and maps. */
interface Budget {
  valuesLeft: number;
}

/** @returns how many were dropped */
function readAttributes(list: unknown, into: Attributes, budget: Budget, depth = 0): number {
  let count = 0;
  let dropped = 0;
  for (const { key, value } of objectsOf(list, "attributes")) {
    dropped += putAttribute(into, count, textOf(key, "key"), anyValueOf(value, budget, depth));
    count += 1;
  }
  return dropped;
}

function anyValueOf(value: unknown, budget: Budget, depth: number): AttributeValue {
  if (value === undefined || value === null) return null;
  const any = objectOf(value, "an attribute's value");
  if (any.stringValue !== undefined) return textOf(any.stringValue, "stringValue");
  if (any.boolValue !== undefined) return booleanOf(any.boolValue);
  if (any.intValue !== undefined) return int64Of(any.intValue);
  if (any.doubleValue !== undefined) return doubleOf(any.doubleValue);
  if (any.arrayValue !== undefined) return arrayOf(objectOf(any.arrayValue, "arrayValue"), budget, depth + 1);
  if (any.kvlistValue !== undefined) return mapOf(objectOf(any.kvlistValue, "kvlistValue"), budget, depth + 1);
  if (any.bytesValue !== undefined) return textOf(any.bytesValue, "bytesValue");
  return null;
}

function booleanOf(value: unknown): boolean {
  if (typeof value !== "boolean") throw new MalformedOtlpError("Expected boolValue to be true or false");
  return value;
}

function int64Of(value: unknown): number | string {
  if (typeof value === "number" && Number.isInteger(value)) return value;
  if (typeof value === "string" && /^-?\d{1,20}$/.test(value)) {
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }
  throw new MalformedOtlpError("Expected intValue to be a whole number");
}

function doubleOf(value: unknown): number | string {
  if (typeof value === "number") return finite(value);
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") return value;
  throw new MalformedOtlpError("Expected doubleValue to be a number");
}

function arrayOf({ values }: JsonObject, budget: Budget, depth: number): AttributeValue {
  const items: AttributeValue[] = [];
  if (depth > otlpLimits.depthMax) return null;
  for (const one of objectsOf(values, "values")) {
    budget.valuesLeft -= 1;
    if (budget.valuesLeft < 0) break;
    items.push(anyValueOf(one, budget, depth));
  }
  return items;
}

function mapOf({ values }: JsonObject, budget: Budget, depth: number): AttributeValue {
  const map = noAttributes();
  if (depth > otlpLimits.depthMax) return null;
  budget.valuesLeft -= Array.isArray(values) ? values.length : 0;
  if (budget.valuesLeft >= 0) readAttributes(values, map, budget, depth);
  return map;
}
