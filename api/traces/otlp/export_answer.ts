/**
 * What a collector answers, in the encoding that it was asked in: `ExportTraceServiceResponse`, and
 * `google.rpc.Status` for what is refused (OTLP 1.x, "OTLP/HTTP response").
 */
import protobuf from "protobufjs/minimal.js";
import type { ApiError, ErrorCode } from "#contracts/errors.ts";
import { errorHeaders } from "#http/error_headers.ts";
import type { Rejected } from "./decode.ts";

export const protobufType = "application/x-protobuf";
export const jsonType = "application/json";

/** Spans that are not kept are told with the reason of the first; a reason alone is a warning. */
export function exportAnswer({ count, reason }: Rejected, isProtobuf: boolean): Response {
  const told = count > 0 || reason !== undefined;
  if (!isProtobuf) {
    const partialSuccess = { rejectedSpans: String(count), errorMessage: reason ?? "" };
    return Response.json(told ? { partialSuccess } : {});
  }
  const writer = protobuf.Writer.create();
  if (told) {
    writer.uint32(0x0a).fork();
    if (count > 0) writer.uint32(0x08).int64(count);
    writer.uint32(0x12).string(reason ?? "");
    writer.ldelim();
  }
  return new Response(writer.finish(), { headers: { "content-type": protobufType } });
}

/** Numbers of google.rpc.Code. */
const rpcCodes: Partial<Record<ErrorCode, number>> = {
  bad_request: 3,
  unprocessable: 3,
  unsupported_media_type: 3,
  not_found: 5,
  forbidden: 7,
  too_many_requests: 8,
  payload_too_large: 8,
  method_not_allowed: 12,
  unavailable: 14,
  unauthorized: 16,
};
const internalCode = 13;

/** Status, and beside it, in JSON, the platform's envelope: who reads errors of ours finds them there as well. */
export function exportRefusal(error: ApiError, isProtobuf: boolean): Response {
  const details = Object.entries(error.details ?? {}).map(([field, words]) => `${field}: ${words}`);
  const message = details.length > 0 ? details.join("; ") : error.message;
  const code = rpcCodes[error.code] ?? internalCode;
  const head = { status: error.status, headers: errorHeaders(error) };
  if (!isProtobuf) return Response.json({ code, message, error: error.body() }, head);
  const body = protobuf.Writer.create().uint32(0x08).int32(code).uint32(0x12).string(message).finish();
  return new Response(body, { ...head, headers: { ...head.headers, "content-type": protobufType } });
}
