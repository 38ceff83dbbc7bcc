/** The way to the thread that decodes: started with the first request, started anew after it was lost. */
import type { Worker } from "node:worker_threads";
import { ApiError } from "#contracts/errors.ts";
import { startTypescriptWorker } from "#providers/typescript_worker.ts";
import type { ExportBody, Rejected } from "./decode.ts";
import type { DecodingReply, DecodingRequest } from "./decoding_worker.ts";
import type { MappedSpan } from "./semantics.ts";

export interface Decoded {
  spans: MappedSpan[];
  rejected: Rejected;
}

interface Waiting {
  spans: MappedSpan[];
  bytes: number;
  resolve(decoded: Decoded): void;
  reject(error: unknown): void;
}

/** Packed bytes that may wait for the thread: beyond that it is too slow for what comes. */
const waitingBytesMax = 48 * 1024 * 1024;
/** A body that takes more than this costs the thread, never the process. */
const heapMbMax = 768;
export const retryAfterS = 2;

export class DecodingThread {
  #worker: Worker | undefined;
  #waiting = new Map<number, Waiting>();
  #waitingBytes = 0;
  #lastId = 0;

  /** @throws ApiError bad_request, payload_too_large, or unavailable while too much waits already */
  decode(body: ExportBody): Promise<Decoded> {
    if (this.#waitingBytes + body.bytes.byteLength > waitingBytesMax) {
      return Promise.reject(new ApiError("unavailable", { retryAfterS }));
    }
    this.#worker ??= this.#start();
    this.#lastId += 1;
    const id = this.#lastId;
    const bytes = ownBytes(body.bytes);
    const request: DecodingRequest = { ...body, bytes, id };
    this.#waitingBytes += bytes.byteLength;
    return new Promise<Decoded>((resolve, reject) => {
      this.#waiting.set(id, { spans: [], bytes: bytes.byteLength, resolve, reject });
      this.#worker?.ref();
      this.#worker?.postMessage(request, [bytes.buffer as ArrayBuffer]);
    });
  }

  /** What waits is refused; a later request starts the thread again. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#failAll(new ApiError("unavailable", { retryAfterS }));
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = startTypescriptWorker(new URL("./decoding_worker.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: heapMbMax },
    });
    let cause: unknown;
    worker.on("message", (reply: DecodingReply) => this.#take(reply));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#failAll(new ApiError("unavailable", { retryAfterS, cause }));
    });
    return worker;
  }

  #take(reply: DecodingReply): void {
    const waiting = this.#waiting.get(reply.id);
    if (!waiting) return;
    if (reply.type === "spans") {
      for (const span of reply.spans) waiting.spans.push(span);
      return;
    }
    this.#forget(reply.id, waiting);
    if (reply.type === "done") waiting.resolve({ spans: waiting.spans, rejected: reply.rejected });
    else if (reply.type === "failed") waiting.reject(reply.cause);
    else {
      const code = reply.why === "malformed" ? "bad_request" : "payload_too_large";
      waiting.reject(new ApiError(code, { details: { body: reply.message } }));
    }
  }

  #forget(id: number, waiting: Waiting): void {
    this.#waiting.delete(id);
    this.#waitingBytes -= waiting.bytes;
    // An idle thread keeps no process alive.
    if (this.#waiting.size === 0) this.#worker?.unref();
  }

  #failAll(error: ApiError): void {
    for (const [id, waiting] of this.#waiting) {
      this.#forget(id, waiting);
      waiting.reject(error);
    }
  }
}

/** Bytes that can be handed over without taking a shared buffer's other owners theirs. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}
