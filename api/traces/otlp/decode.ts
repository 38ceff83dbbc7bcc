/** The body of one export request as spans of ours: unpacked, read, checked and mapped, within the bounds. */
import { gunzipSync } from "node:zlib";
import { otlpLimits } from "#contracts/otlp.ts";
import { jsonSpans } from "./json.ts";
import type { OtlpSpan, ReceivedSpan } from "./otlp_span.ts";
import { MalformedOtlpError } from "./otlp_span.ts";
import { protobufSpans } from "./protobuf.ts";
import { hasIds, isHexId, type MappedSpan, mapSpan } from "./semantics.ts";

export interface ExportBody {
  bytes: Uint8Array;
  encoding: "json" | "protobuf";
  isGzip: boolean;
  /** When it came. */
  nowMs: number;
}

/** Spans of a request that are not kept; the others are. */
export interface Rejected {
  count: number;
  /** Why the first of them is not. */
  reason?: string;
}

export class BodyTooLargeError extends Error {
  constructor() {
    super(`Expected at most ${otlpLimits.unpackedBytesMax} bytes without gzip`);
    this.name = "BodyTooLargeError";
  }
}

const dayUs = 86_400_000_000;

/**
 * The spans that can be kept, one by one; returns how many cannot.
 * @throws MalformedOtlpError for what does not parse, or has no span with ids; BodyTooLargeError
 */
export function* decodeExport({ bytes, encoding, isGzip, nowMs }: ExportBody): Generator<MappedSpan, Rejected> {
  const body = isGzip ? unpacked(bytes) : bytes;
  const rejected: Rejected = { count: 0 };
  let found = 0;
  let withoutIds = 0;
  for (const received of encoding === "json" ? jsonSpans(body) : protobufSpans(body)) {
    found += 1;
    const reason = problemOf(received, nowMs * 1000);
    if (reason === undefined) {
      yield mapSpan(received);
      continue;
    }
    if (!hasIds(received.span)) withoutIds += 1;
    rejected.count += 1;
    rejected.reason ??= `span ${JSON.stringify(received.span.name.slice(0, 100))}: ${reason}`;
  }
  if (found > 0 && withoutIds === found) {
    throw new MalformedOtlpError("Expected spans with ids: no span has a valid traceId and spanId");
  }
  return rejected;
}

function unpacked(bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: otlpLimits.unpackedBytesMax });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw new BodyTooLargeError();
    throw new MalformedOtlpError("Expected a body in gzip, as Content-Encoding says");
  }
}

function problemOf({ span }: ReceivedSpan, nowUs: number): string | undefined {
  if (!isHexId(span.traceId, 32)) return "Expected traceId as 16 bytes that are not all zero";
  if (!isHexId(span.spanId, 16)) return "Expected spanId as 8 bytes that are not all zero";
  if (span.parentSpanId !== "" && !isHexId(span.parentSpanId, 16)) return "Expected parentSpanId as 8 bytes or none";
  return problemOfTimes(span, nowUs);
}

function problemOfTimes({ startedUs, endedUs }: OtlpSpan, nowUs: number): string | undefined {
  const { daysBack, daysAhead } = otlpLimits;
  if (startedUs < nowUs - daysBack * dayUs || Math.max(startedUs, endedUs) > nowUs + daysAhead * dayUs) {
    return `Expected a time at most ${daysBack} days ago and at most ${daysAhead} day ahead`;
  }
  return undefined;
}
