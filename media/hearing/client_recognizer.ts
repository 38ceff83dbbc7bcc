/**
 * A recognizer whose words come from the client: a browser that recognizes speech itself. Our detection still
 * ends turns; the words of a turn are awaited for a moment, then the newest partial result counts.
 */
import type { SpeechToText, SttResult, Utterance } from "#providers/provider.ts";
import type { Scheduler } from "../threads/scheduler.ts";

/** How long after the end of speech its final words are awaited. */
export const finalWordsMsMax = 1200;
/** Segments that wait for their turn; the oldest goes. */
const segmentsMax = 32;

export interface ClientWords {
  segment_id: string;
  text: string;
  final: boolean;
  language?: string | undefined;
}

export class ClientRecognizer implements SpeechToText {
  onPartial?: ((result: SttResult) => void) | undefined;
  readonly #scheduler: Scheduler;
  readonly #onLate: (text: string) => void;
  /** What was said since the last turn, by segment. */
  #segments = new Map<string, ClientWords>();
  /** Segments of turns that are over: what comes of them is too late. */
  #taken = new Set<string>();
  #isSpeaking = false;
  /** A turn is over, and its words are awaited. */
  #finish: (() => void) | undefined;

  /** `onLate`: words of speech that was not noticed, or came after their turn was over. */
  constructor(scheduler: Scheduler, onLate: (text: string) => void) {
    this.#scheduler = scheduler;
    this.#onLate = onLate;
  }

  write(): void {
    this.#isSpeaking = true;
  }

  take(words: ClientWords): void {
    if (this.#taken.has(words.segment_id)) return;
    this.#segments.set(words.segment_id, words);
    const [oldest] = this.#segments.keys();
    if (this.#segments.size > segmentsMax && oldest !== undefined) this.#segments.delete(oldest);
    const isExpected = this.#isSpeaking || this.#finish !== undefined;
    if (isExpected) this.onPartial?.({ text: this.#text(), final: false, ...languageOf(words) });
    if (!this.#hasAllWords()) return;
    if (this.#finish) this.#finish();
    else if (!isExpected) this.#onLate(this.#takeText().text);
  }

  async finish(_utterance: Utterance, signal: AbortSignal): Promise<SttResult> {
    this.#isSpeaking = false;
    if (!this.#hasAllWords()) await this.#finalWords(signal);
    return this.#takeText();
  }

  #finalWords(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        stop();
        signal.removeEventListener("abort", end);
        this.#finish = undefined;
        resolve();
      };
      const stop = this.#scheduler.after(finalWordsMsMax, end);
      signal.addEventListener("abort", end, { once: true });
      this.#finish = end;
    });
  }

  #hasAllWords(): boolean {
    return this.#segments.size > 0 && [...this.#segments.values()].every(({ final }) => final);
  }

  #text(): string {
    return [...this.#segments.values()]
      .map(({ text }) => text.trim())
      .filter(Boolean)
      .join(" ");
  }

  #takeText(): SttResult {
    const text = this.#text();
    const newest = [...this.#segments.values()].at(-1);
    this.#taken = new Set(this.#segments.keys());
    this.#segments = new Map();
    return { text, final: true, ...(newest && languageOf(newest)) };
  }

  close(): void {
    this.#finish?.();
  }
}

const languageOf = ({ language }: ClientWords) => (language === undefined ? {} : { language });
