/**
 * A request body between a transport that pushes chunks and a consumer that pulls them: the
 * transport is paused while more than `pausedAboveBytes` wait.
 */
import { RequestAbortedError } from "./transport.ts";

const pausedAboveBytes = 64 * 1024;

export interface BodyFlow {
  pause(): void;
  resume(): void;
}

export class BodyQueue implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #waitingBytes = 0;
  #paused = false;
  #complete = false;
  #aborted = false;
  #wake: (() => void) | undefined;
  readonly #flow: BodyFlow;

  constructor(flow: BodyFlow) {
    this.#flow = flow;
  }

  /** Whether all of the body has arrived. */
  get isComplete(): boolean {
    return this.#complete;
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    if (chunk.byteLength > 0) {
      this.#chunks.push(chunk);
      this.#waitingBytes += chunk.byteLength;
    }
    this.#complete ||= isLast;
    if (!this.#complete && !this.#paused && this.#waitingBytes > pausedAboveBytes) {
      this.#paused = true;
      this.#flow.pause();
    } else if (this.#complete) {
      // The last of it may have been read before the pause; the next request comes over the same connection.
      this.#resume();
    }
    this.#wake?.();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#flow.resume();
  }

  abort(): void {
    this.#aborted = true;
    this.#wake?.();
  }

  /** Takes and drops what is left, up to `bytesMax`: instead of whoever iterated. Settles also when the peer is gone. */
  async discard(bytesMax: number): Promise<void> {
    let bytes = 0;
    try {
      for await (const chunk of this) {
        bytes += chunk.byteLength;
        if (bytes > bytesMax) return;
      }
    } catch (error) {
      if (!(error instanceof RequestAbortedError)) throw error;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#waitingBytes -= chunk.byteLength;
        yield chunk;
        continue;
      }
      if (this.#complete) return;
      if (this.#aborted) throw new RequestAbortedError();
      this.#resume();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
