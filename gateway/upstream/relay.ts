/**
 * Hands the api's answer on to a client. It reads ahead of a client that takes its answer slowly, within
 * bounds, so that the connection to the api is free again; a client that takes nothing at all is cut.
 */
import type { Clock } from "../calls/clock.ts";
import type { HttpResponse, ResponseHeaders, ResponseStream } from "../transport/transport.ts";
import type { Requester } from "./requester.ts";
import { type ShareLimits, Shares } from "./shares.ts";

const mebibyte = 1024 * 1024;
/** Of one answer. */
const aheadBytesMax = mebibyte;
const aheadLimits: ShareLimits = { total: 64 * mebibyte, address: 32 * mebibyte, tenant: 8 * mebibyte };
const stalledMsMax = 30_000;

export interface Answer {
  status: number;
  headers: ResponseHeaders;
  body: AsyncIterable<Uint8Array> & { destroy(): unknown };
}

export class Relay {
  readonly #ahead = new Shares(aheadLimits);
  readonly #outboxes = new Set<Outbox>();
  readonly #clock: Clock;
  readonly #stopTicker: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#stopTicker = clock.every(1000, () => {
      for (const outbox of this.#outboxes) outbox.cutStalled(clock.nowMs() - stalledMsMax);
    });
  }

  /**
   * Settles when the client has the answer, or is gone.
   * @param onRead called once, when nothing more is wanted of the api
   */
  async send(
    answer: Answer,
    to: { response: HttpResponse; requester: Requester; signal: AbortSignal },
    onRead: () => void,
  ): Promise<void> {
    const { response, requester, signal } = to;
    const outbox = new Outbox(response.stream(answer.status, answer.headers), this.#ahead, requester, this.#clock);
    const onAbort = () => {
      answer.body.destroy();
      outbox.close();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#outboxes.add(outbox);
    try {
      if (signal.aborted) return onAbort();
      for await (const chunk of answer.body) {
        if (outbox.isClosed) return;
        outbox.add(chunk);
        await outbox.room();
      }
      onRead();
      await outbox.sent();
      outbox.end();
    } catch {
      // The api broke off: the client must see that the answer is incomplete.
      outbox.destroy();
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#outboxes.delete(outbox);
      outbox.close();
      answer.body.destroy();
      onRead();
    }
  }

  close(): void {
    this.#stopTicker();
  }
}

/** What of one answer its client has not taken yet. */
class Outbox {
  readonly #stream: ResponseStream;
  readonly #shares: Shares;
  readonly #requester: Requester;
  readonly #clock: Clock;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** Of these, the ones that the shares know of. */
  #sharedBytes = 0;
  #isWritable = true;
  #stalledSinceMs = 0;
  #isClosed = false;
  #onChange: () => void = () => undefined;

  constructor(stream: ResponseStream, shares: Shares, requester: Requester, clock: Clock) {
    this.#stream = stream;
    this.#shares = shares;
    this.#requester = requester;
    this.#clock = clock;
    stream.onWritable(() => this.#flush());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  add(chunk: Uint8Array): void {
    if (this.#isWritable) {
      this.#write(chunk);
    } else {
      this.#chunks.push(chunk);
      this.#bytes += chunk.byteLength;
    }
  }

  /** Resolves when more may be read for this client, or when it is gone. */
  async room(): Promise<void> {
    while (!this.#isClosed && !this.#mayReadAhead()) await this.#change();
  }

  /** Resolves when the client has taken everything, or is gone. */
  async sent(): Promise<void> {
    while (!this.#isClosed && this.#chunks.length > 0) await this.#change();
  }

  end(): void {
    if (!this.#isClosed) this.#stream.end();
  }

  destroy(): void {
    this.#stream.destroy();
    this.close();
  }

  cutStalled(sinceMs: number): void {
    if (!this.#isWritable && this.#stalledSinceMs <= sinceMs) this.destroy();
  }

  close(): void {
    this.#isClosed = true;
    this.#chunks.length = 0;
    this.#bytes = 0;
    this.#share();
    this.#onChange();
  }

  #mayReadAhead(): boolean {
    return this.#isWritable || (this.#bytes < aheadBytesMax && this.#share());
  }

  /** Brings the shares to what is held. @returns whether there is room for it */
  #share(): boolean {
    const more = this.#bytes - this.#sharedBytes;
    if (more > 0 && !this.#shares.take(this.#requester, more)) return false;
    if (more < 0) this.#shares.give(this.#requester, -more);
    this.#sharedBytes = this.#bytes;
    return true;
  }

  #flush(): void {
    this.#isWritable = true;
    while (this.#isWritable && !this.#isClosed) {
      const chunk = this.#chunks.shift();
      if (!chunk) break;
      this.#bytes -= chunk.byteLength;
      this.#write(chunk);
    }
    this.#share();
    this.#onChange();
  }

  #write(chunk: Uint8Array): void {
    this.#isWritable = this.#stream.write(chunk);
    if (!this.#isWritable) this.#stalledSinceMs = this.#clock.nowMs();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
    });
  }
}
