/** One transcript item of the agent: its text as it grows, the timing of its clauses, and what the client has seen of it. */
import type { TranscriptItem } from "#contracts/call_record.ts";
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import { isQuestionAt } from "../session/backchannel.ts";
import { tenths } from "../session/turn_timing.ts";
import { type CutText, cutText, type SpokenClause } from "./heard_text.ts";

type Transcript = ServerMessageOf<"transcript">;

export class SpokenItem {
  readonly #labels: { turn_id: string; item_id: string };
  readonly #clauses: SpokenClause[];
  #text: string;
  #startMs = 0;
  #isShown = false;
  #isFinal = false;
  /** The client was sent its first audio. */
  isAnnounced = false;

  /** `clauses` and `text` are what an interrupted item left to be said. */
  constructor(turnId: string, itemId: string, clauses: SpokenClause[] = [], text = "") {
    this.#labels = { turn_id: turnId, item_id: itemId };
    this.#clauses = clauses;
    this.#text = text;
  }

  get text(): string {
    return this.#text.trim();
  }

  get isShown(): boolean {
    return this.#isShown;
  }

  /** Text from the model; timing follows when it is spoken. */
  grow(delta: string, callMs: number): void {
    if (!this.#text) this.#startMs = callMs;
    this.#text += delta;
  }

  /** The transcript so far. */
  show(delta: string): Transcript {
    this.#isShown = true;
    return { type: "transcript", role: "agent", ...this.#labels, text: this.text, delta, final: false };
  }

  /** The transcript in full, once. */
  finish(): Transcript | undefined {
    if (this.#isFinal || !this.#text) return undefined;
    this.#isFinal = true;
    this.#isShown = true;
    return { type: "transcript", role: "agent", ...this.#labels, text: this.text, final: true };
  }

  /** What an interruption left unsaid is being said after all. */
  goesOn(callMs: number, isComplete: boolean): Transcript | undefined {
    this.#startMs = callMs;
    if (!this.#text) return undefined;
    return isComplete ? this.finish() : this.show(this.#text);
  }

  clauseBegins(text: string, atMs: number): void {
    this.#clauses.push({ text, startMs: atMs, endMs: undefined });
  }

  clauseEnds(atMs: number, failed: boolean): void {
    const clause = this.#clauses.at(-1);
    if (!clause) return;
    clause.endMs = atMs;
    clause.failed = failed;
  }

  /** What was heard up to `playedMs`, and what was not. */
  cut(playedMs: number, audioMs: number): CutText {
    return cutText(this.#clauses, playedMs, audioMs);
  }

  /** Whether a question is what was heard last at `playedMs`. */
  asksAt(playedMs: number, audioMs: number): boolean {
    return isQuestionAt(this.text, this.cut(playedMs, audioMs).heard.length);
  }

  /** Text that was not heard: of the clauses that were cut, and of those that speech had not come to. */
  unsaid(cut: CutText): string {
    const spokenLength = this.#clauses.reduce((length, clause) => length + clause.text.length, 0);
    return cut.rest.map(({ text }) => text).join("") + this.#text.slice(spokenLength);
  }

  /** All of the text, unless speech failed on the way, or `heardMs` of its audio was all that the client acknowledged. */
  heardToTheEnd(audioMs: number, heardMs: number): string {
    if (heardMs < audioMs) return this.cut(heardMs, audioMs).heard;
    const isWhole = this.#clauses.map(({ text }) => text).join("") === this.#text;
    if (isWhole && this.#clauses.every(({ endMs, failed }) => endMs !== undefined && !failed)) return this.text;
    return this.cut(audioMs, audioMs).heard;
  }

  /** The record's item; undefined where there is no text. */
  record(heard: string, interrupted: boolean, callMs: number): TranscriptItem | undefined {
    if (!this.#text) return undefined;
    return {
      ...this.#labels,
      role: "agent",
      text: this.text,
      heard_text: heard,
      interrupted,
      start_ms: tenths(this.#startMs),
      end_ms: tenths(callMs),
    };
  }
}
