/**
 * Speech over a vendor's socket that carries several requests side by side, each a context of its own. What
 * is the same for all vendors is here: one socket a call, dialled with the call and again when it was lost,
 * clauses as contexts, cancelling. A vendor's folder has the wire.
 */
import type { Pcm, ProviderAccess, TextToSpeech } from "./provider.ts";
import { ProviderError } from "./provider_error.ts";
import { openVendorSocket, type VendorSocket } from "./vendor_socket.ts";

/** What a vendor said of one context. */
export type Spoken =
  /** 16-bit samples in base64. */
  | { context: string; is: "audio"; audio: string }
  | { context: string; is: "done" }
  /** Without a context it is the socket that fails. */
  | { context?: string; is: "failed"; error: ProviderError };

/** One vendor's wire. */
export interface VoiceWire {
  provider: string;
  url: string;
  headers: Record<string, string>;
  sampleRateHz: number;
  /** The messages that have a text said whole. */
  say(context: string, text: string): string[];
  /** The message that ends a context where it is. */
  cancel(context: string): string;
  /** @throws Error for what is not of the protocol */
  read(text: string): Spoken[];
}

/** What came of a clause and was not taken yet. */
class Context {
  readonly #events: (Pcm | "done" | ProviderError)[] = [];
  #wake: (() => void) | undefined;

  put(event: Pcm | "done" | ProviderError): void {
    this.#events.push(event);
    this.#wake?.();
  }

  /** Undefined when `signal` is aborted first. */
  async next(signal: AbortSignal): Promise<Pcm | "done" | ProviderError | undefined> {
    if (signal.aborted) return undefined;
    const event = this.#events.shift();
    if (event) return event;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = undefined;
    return signal.aborted ? undefined : this.#events.shift();
  }
}

export class StreamingVoice implements TextToSpeech {
  readonly #wire: VoiceWire;
  readonly #access: ProviderAccess;
  readonly #contexts = new Map<string, Context>();
  #socket: VendorSocket | undefined;
  #clauses = 0;
  #isClosed = false;

  constructor(wire: VoiceWire, access: ProviderAccess) {
    this.#wire = wire;
    this.#access = access;
    this.#dial();
  }

  async *speak(text: string, _context: unknown, signal: AbortSignal): AsyncGenerator<Pcm> {
    if (signal.aborted || this.#isClosed) return;
    // A socket that was idle may have been lost without anybody noticing: the first failure is tried again.
    for (let attempt = 1; ; attempt += 1) {
      const failure = yield* this.#sayOnce(text, signal);
      if (!failure) return;
      if (attempt > 1 || failure.hasSpoken || !mayHelp(failure.error)) throw failure.error;
    }
  }

  /** @returns why it broke off, and whether something had been said by then */
  async *#sayOnce(
    text: string,
    signal: AbortSignal,
  ): AsyncGenerator<Pcm, { error: ProviderError; hasSpoken: boolean } | undefined> {
    const id = `clause_${this.#clauses}`;
    this.#clauses += 1;
    const context = new Context();
    this.#contexts.set(id, context);
    let hasSpoken = false;
    let isOver = false;
    try {
      const socket = this.#socket ?? this.#dial();
      for (const message of this.#wire.say(id, text)) socket.send(message);
      for (;;) {
        const event = await context.next(signal);
        if (event === undefined) return undefined;
        if (event === "done" || event instanceof ProviderError) {
          isOver = true;
          return event === "done" ? undefined : { error: event, hasSpoken };
        }
        hasSpoken = true;
        yield event;
      }
    } finally {
      this.#contexts.delete(id);
      if (!isOver) this.#socket?.send(this.#wire.cancel(id));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
    this.#socket = undefined;
  }

  #dial(): VendorSocket {
    const { provider, url, headers } = this.#wire;
    const socket = openVendorSocket({ stage: "tts", provider, url, headers }, this.#access, {
      text: (text) => this.#hear(socket, text),
      failed: (error) => this.#fail(socket, error),
    });
    this.#socket = socket;
    return socket;
  }

  #hear(socket: VendorSocket, text: string): void {
    try {
      for (const spoken of this.#wire.read(text)) {
        if (spoken.is === "failed" && spoken.context === undefined) throw spoken.error;
        // A context that was cancelled may still be spoken of.
        const context = this.#contexts.get(spoken.context ?? "");
        if (spoken.is === "audio") context?.put(this.#soundOf(spoken.audio));
        else context?.put(spoken.is === "done" ? "done" : spoken.error);
      }
    } catch (cause) {
      socket.close();
      const words = `${this.#wire.provider} sent what its protocol does not know`;
      const garbage = new ProviderError("tts", words, { kind: "protocol", cause });
      this.#fail(socket, cause instanceof ProviderError ? cause : garbage);
    }
  }

  #soundOf(base64: string): Pcm {
    const bytes = Buffer.from(base64, "base64");
    const samples = new Int16Array(bytes.length >> 1);
    for (let at = 0; at < samples.length; at += 1) samples[at] = bytes.readInt16LE(at * 2);
    return { samples, sampleRateHz: this.#wire.sampleRateHz };
  }

  /** While nobody speaks it is dialled again for the next clause. */
  #fail(socket: VendorSocket, error: ProviderError): void {
    if (this.#socket === socket) this.#socket = undefined;
    for (const context of this.#contexts.values()) context.put(error);
  }
}

const mayHelp = ({ kind }: ProviderError) => kind === "network" || kind === "unavailable" || kind === "protocol";
