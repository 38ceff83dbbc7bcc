/**
 * The thread that decodes export requests: a body of the largest size takes it half a second, which the api's
 * loop could not stand still for. Spans go back a few at a time, so that taking them in is never long either.
 */
import { parentPort } from "node:worker_threads";
import { BodyTooLargeError, decodeExport, type ExportBody, type Rejected } from "./decode.ts";
import { MalformedOtlpError } from "./otlp_span.ts";
import type { MappedSpan } from "./semantics.ts";

export type DecodingRequest = ExportBody & { id: number };
export type DecodingReply = { id: number } & (
  | { type: "spans"; spans: MappedSpan[] }
  | { type: "done"; rejected: Rejected }
  | { type: "refused"; why: "malformed" | "too_large"; message: string }
  | { type: "failed"; cause: unknown }
);

const spansAtOnce = 128;

if (!parentPort) throw new Error("This file runs as a worker thread only");
const port = parentPort;
const reply = (message: DecodingReply) => port.postMessage(message);

port.on("message", ({ id, ...body }: DecodingRequest) => {
  try {
    const decoded = decodeExport(body);
    let spans: MappedSpan[] = [];
    for (let next = decoded.next(); ; next = decoded.next()) {
      if (next.done || spans.length === spansAtOnce) {
        reply({ id, type: "spans", spans });
        spans = [];
      }
      if (next.done) return reply({ id, type: "done", rejected: next.value });
      spans.push(next.value);
    }
  } catch (error) {
    if (error instanceof MalformedOtlpError) reply({ id, type: "refused", why: "malformed", message: error.message });
    else if (error instanceof BodyTooLargeError) {
      reply({ id, type: "refused", why: "too_large", message: error.message });
    } else reply({ id, type: "failed", cause: error });
  }
});
