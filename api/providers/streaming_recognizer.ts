/**
 * A recognizer that hears a call as one stream, silence too, over a vendor's socket. What is the same for
 * all vendors is here: the socket's life, pieces of an even length, words between two turns, and an
 * utterance that is said again over a new socket when the old one broke. A vendor's folder has the wire.
 */
import type { Pcm, ProviderAccess, SpeechToText, SttResult, Utterance, WaitDeps } from "./provider.ts";
import { ProviderError } from "./provider_error.ts";
import { joined, withTail } from "./utterance_tail.ts";
import { openVendorSocket, type VendorSocket } from "./vendor_socket.ts";
import { waitFor } from "./waiting.ts";

/** What a vendor said, in our words. Times are milliseconds of the audio that this socket was sent. */
export type Heard =
  /** Words that may still change; they replace the partial ones before. */
  | { is: "partial"; text: string }
  /** Words that stay. */
  | { is: "final"; text: string; endMs: number }
  /** The answer to `finalize`: everything before it has been told. */
  | { is: "finalized" }
  /** The vendor holds the turn to be over. */
  | { is: "turn_end" };

/** One vendor's wire. */
export interface RecognizerWire {
  provider: string;
  url(sampleRateHz: number): string;
  headers: Record<string, string>;
  /** @throws Error for what is not of the protocol, ProviderError for a failure that the vendor tells */
  read(text: string): Heard[];
  /** Asks for all words so far, where the vendor can be asked. Without it the vendor ends turns itself. */
  finalize?: string;
  /** Sent while there is no audio, where the vendor would hang up. */
  keepAlive?: string;
  goodbye: string;
}

const pieceMs = 80;
/** The vendor's last words of a turn come within this, or what there is counts. */
const lastWordsMs = 2000;
const keepAliveEveryMs = 4000;
/** After a failure between turns the next socket is not dialled at once. */
const redialAfterMs = 1000;
/** A vendor that ends turns itself hears silence behind an utterance that is said again. */
const silenceAfterMs = 1500;
/** Words that ended earlier than an utterance began are not its own. */
const strayMs = 500;

export interface RecognizerRequest {
  wire: RecognizerWire;
  access: ProviderAccess;
  waits: WaitDeps;
  language: string;
}

export class StreamingRecognizer implements SpeechToText {
  readonly isContinuous = true;
  readonly endsTurns: boolean;
  onPartial: ((result: SttResult) => void) | undefined;
  onTurnEnd: (() => void) | undefined;
  readonly #request: RecognizerRequest;
  #socket: VendorSocket | undefined;
  #rateHz = 0;
  #isClosed = false;
  /** Samples that are shorter than a piece. */
  #rest: Int16Array[] = [];
  #restLength = 0;
  #sentSamples = 0;
  #lastSentAtMs = 0;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failure: ProviderError | undefined;
  #finals: { text: string; endMs: number }[] = [];
  #partial = "";
  /** Ends of turns that the vendor told and nobody took. */
  #turnEnds = 0;
  /** The vendor gave a sign since the last words were taken: that it has none may be so. */
  #isAlive = false;
  /** Woken by the last words, or by a failure. */
  #wake: (() => void) | undefined;
  readonly #keepAlive: NodeJS.Timeout | undefined;

  constructor(request: RecognizerRequest) {
    this.#request = request;
    const { finalize, keepAlive } = request.wire;
    this.endsTurns = finalize === undefined;
    if (keepAlive !== undefined) {
      this.#keepAlive = setInterval(() => {
        if (performance.now() - this.#lastSentAtMs >= keepAliveEveryMs) this.#socket?.send(keepAlive);
      }, keepAliveEveryMs).unref();
    }
  }

  write({ samples, sampleRateHz }: Pcm): void {
    if (this.#isClosed) return;
    this.#rateHz = sampleRateHz;
    if (!this.#socket) {
      if (performance.now() - this.#failedAtMs < redialAfterMs) return;
      this.#dial();
    }
    this.#rest.push(samples);
    this.#restLength += samples.length;
    if (this.#restLength >= (pieceMs * sampleRateHz) / 1000) this.#flush();
  }

  async finish(utterance: Utterance, signal: AbortSignal): Promise<SttResult> {
    if (this.#isClosed || signal.aborted) return this.#result("");
    this.#rateHz = utterance.sampleRateHz;
    const { samples } = withTail(utterance);
    let failure = this.#socket ? await this.#lastWords(signal) : this.#failure;
    const mayHelp = failure ? failure.retryable : !this.#socket;
    if (mayHelp && !signal.aborted) {
      this.#sayAgain(samples);
      failure = await this.#lastWords(signal);
    }
    const text = this.#takeWords((samples.length * 1000) / utterance.sampleRateHz);
    if (signal.aborted) return this.#result("");
    if (failure) throw failure;
    return this.#result(text);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#keepAlive);
    this.#socket?.send(this.#request.wire.goodbye);
    this.#socket?.close();
    this.#socket = undefined;
    this.#wake?.();
  }

  #result(text: string): SttResult {
    return { text, final: true, language: this.#request.language };
  }

  #dial(): void {
    const { wire, access } = this.#request;
    this.#failure = undefined;
    this.#rest = [];
    this.#restLength = 0;
    this.#sentSamples = 0;
    this.#finals = [];
    this.#partial = "";
    this.#turnEnds = 0;
    const target = {
      stage: "stt" as const,
      provider: wire.provider,
      url: wire.url(this.#rateHz),
      headers: wire.headers,
    };
    const socket = openVendorSocket(target, access, {
      text: (text) => this.#hear(socket, text),
      failed: (error) => this.#fail(socket, error),
    });
    this.#socket = socket;
  }

  #flush(): void {
    if (this.#restLength === 0) return;
    const piece = joined(this.#rest, this.#restLength);
    this.#rest = [];
    this.#restLength = 0;
    this.#sentSamples += piece.length;
    this.#lastSentAtMs = performance.now();
    this.#socket?.send(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
  }

  #hear(socket: VendorSocket, text: string): void {
    this.#isAlive = true;
    try {
      for (const heard of this.#request.wire.read(text)) this.#take(heard);
    } catch (cause) {
      const { provider } = this.#request.wire;
      const garbage = new ProviderError("stt", `${provider} sent what its protocol does not know`, {
        kind: "protocol",
        cause,
      });
      socket.close();
      this.#fail(socket, cause instanceof ProviderError ? cause : garbage);
    }
  }

  #take(heard: Heard): void {
    if (heard.is === "finalized") this.#wake?.();
    else if (heard.is === "turn_end") {
      this.#turnEnds += 1;
      this.#wake?.();
      this.onTurnEnd?.();
    } else {
      this.#partial = heard.is === "partial" ? heard.text : "";
      if (heard.is === "final" && heard.text) this.#finals.push(heard);
      const text = this.#words();
      if (text && heard.text) this.onPartial?.({ text, final: false, language: this.#request.language });
    }
  }

  #fail(socket: VendorSocket, error: ProviderError): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    this.#failure = error;
    this.#failedAtMs = performance.now();
    this.#wake?.();
  }

  #words(): string {
    return [...this.#finals.map(({ text }) => text), this.#partial].filter(Boolean).join(" ");
  }

  /** Waits for what the vendor still has to say. @returns why it says nothing, where it failed or had no word in time */
  async #lastWords(signal: AbortSignal): Promise<ProviderError | undefined> {
    const { wire, waits } = this.#request;
    this.#flush();
    // Who ends turns itself and has words, but did not end this one, has been given its time by our guard.
    if (this.#turnEnds === 0 && !(this.endsTurns && this.#words())) {
      if (wire.finalize !== undefined) this.#socket?.send(wire.finalize);
      const over = new AbortController();
      const stop = () => over.abort();
      signal.addEventListener("abort", stop, { once: true });
      this.#wake = stop;
      if (this.#failure || this.#isClosed) stop();
      const isLate = await waitFor(waits, lastWordsMs, over.signal);
      this.#wake = undefined;
      signal.removeEventListener("abort", stop);
      if (isLate && !this.#isAlive) {
        return new ProviderError("stt", `${wire.provider} gave no sign within ${lastWordsMs} ms`, { kind: "timeout" });
      }
    }
    return this.#failure;
  }

  /** The same utterance over a new socket. */
  #sayAgain(samples: Int16Array): void {
    this.#socket?.close();
    this.#dial();
    this.#rest = [samples];
    this.#restLength = samples.length;
    this.#flush();
    if (!this.endsTurns) return;
    const silence = new Int16Array((silenceAfterMs * this.#rateHz) / 1000);
    this.#rest = [silence];
    this.#restLength = silence.length;
    this.#flush();
  }

  /** The words of an utterance that ends here, and none from before it. */
  #takeWords(utteranceMs: number): string {
    const sentMs = (this.#sentSamples * 1000) / this.#rateHz;
    const fromMs = sentMs - utteranceMs - strayMs - (this.endsTurns ? silenceAfterMs : 0);
    this.#finals = this.#finals.filter(({ endMs }) => endMs >= fromMs);
    const text = this.#words();
    this.#finals = [];
    this.#partial = "";
    this.#turnEnds = 0;
    this.#isAlive = false;
    return text;
  }
}
