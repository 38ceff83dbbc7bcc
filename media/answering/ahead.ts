/**
 * What is asked for before it is known to be wanted: the model's answer to words that the caller may not have
 * finished, and the sound of its first clause. Kept until the turn is over; then taken, or thrown away.
 */
import { createClauseSplitter } from "#providers/clauses.ts";
import type { LanguageModel, LlmChunk, LlmRequest, Pcm, SpeakContext, TextToSpeech } from "#providers/provider.ts";
import { plainWords } from "../words/plain_words.ts";

/** Pieces that are kept; then the stage is pulled no further until somebody takes them. */
const piecesMax = 256;

/** A stream that runs by itself until it is taken or dropped. */
class AheadStream<T> {
  readonly #stop = new AbortController();
  readonly #pieces: T[] = [];
  #isOver = false;
  #hasFailed = false;
  #wake: () => void = () => {};

  constructor(begin: (signal: AbortSignal) => AsyncIterable<T>, see: (piece: T) => void) {
    void this.#run(begin(this.#stop.signal), see);
  }

  async #run(stream: AsyncIterable<T>, see: (piece: T) => void): Promise<void> {
    try {
      for await (const piece of stream) {
        this.#pieces.push(piece);
        see(piece);
        this.#wake();
        while (this.#pieces.length >= piecesMax && !this.#stop.signal.aborted) await this.#change();
      }
    } catch {
      // It is asked for again when it is wanted, and then its failure is told.
      this.#hasFailed = true;
    }
    this.#isOver = true;
    this.#wake();
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const earlier = this.#wake;
      this.#wake = () => {
        earlier();
        this.#wake = () => {};
        resolve();
      };
    });
  }

  drop(): void {
    this.#stop.abort();
    this.#wake();
  }

  /** Once. @throws Error where it fails only now */
  async *take(signal: AbortSignal): AsyncIterable<T> {
    const stop = () => this.drop();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        const piece = this.#pieces.shift();
        if (signal.aborted) return;
        if (piece !== undefined) {
          this.#wake();
          yield piece;
        } else if (this.#hasFailed) throw new Error("Failed after it had been asked ahead");
        else if (this.#isOver) return;
        else await this.#change();
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.drop();
    }
  }
}

/** What was used for nothing. */
export interface Wasted {
  prompt: number;
  completion: number;
  cached: number;
  characters: number;
}

export interface AheadEvents {
  /** An answer was taken that had been asked for ahead. */
  hit(): void;
  wasted(what: Wasted): void;
}

/** A model and a voice in front of which an answer can be made ahead. */
export class AnswerAhead {
  readonly llm: LanguageModel;
  readonly tts: TextToSpeech;
  readonly #stages: { llm: LanguageModel; tts: TextToSpeech };
  readonly #events: AheadEvents;
  #answer: { request: LlmRequest; stream: AheadStream<LlmChunk>; used: Wasted } | undefined;
  #speech: { text: string; stream: AheadStream<Pcm> } | undefined;

  constructor(stages: { llm: LanguageModel; tts: TextToSpeech }, events: AheadEvents) {
    this.#stages = stages;
    this.#events = events;
    this.llm = { reply: (request, signal) => this.#reply(request, signal), close: () => stages.llm.close() };
    this.tts = {
      speak: (text, context, signal) => this.#speak(text, context, signal),
      close: () => stages.tts.close(),
    };
  }

  /** Asks the model, and has the first clause of its answer spoken. What was asked before is dropped. */
  ask(request: LlmRequest, context: SpeakContext): void {
    this.drop();
    const used: Wasted = { prompt: 0, completion: 0, cached: 0, characters: 0 };
    const splitter = createClauseSplitter();
    const see = (chunk: LlmChunk) => {
      if (chunk.kind === "usage") {
        used.prompt += chunk.prompt;
        used.completion += chunk.completion;
        used.cached += chunk.cached;
      }
      const [clause] = chunk.kind === "text" && !this.#speech ? splitter.push(chunk.text) : [];
      if (clause === undefined || this.#answer?.used !== used || !clause.trim()) return;
      used.characters = clause.length;
      const speak = (signal: AbortSignal) => this.#stages.tts.speak(clause, context, signal);
      this.#speech = { text: clause, stream: new AheadStream(speak, () => {}) };
    };
    const stream = new AheadStream((signal) => this.#stages.llm.reply(request, signal), see);
    this.#answer = { request, stream, used };
  }

  /** It is not wanted any more. */
  drop(): void {
    const answer = this.#answer;
    this.#answer = undefined;
    this.#speech?.stream.drop();
    this.#speech = undefined;
    if (!answer) return;
    answer.stream.drop();
    this.#events.wasted(answer.used);
  }

  #reply(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmChunk> {
    const answer = this.#answer;
    if (!answer || answer.stream.hasFailed || !isSame(answer.request, request)) {
      this.drop();
      return this.#stages.llm.reply(request, signal);
    }
    this.#answer = undefined;
    this.#events.hit();
    return answer.stream.take(signal);
  }

  #speak(text: string, context: SpeakContext, signal: AbortSignal): AsyncIterable<Pcm> {
    const speech = this.#speech;
    this.#speech = undefined;
    if (speech && !speech.stream.hasFailed && context.first && speech.text === text) return speech.stream.take(signal);
    if (speech) {
      speech.stream.drop();
      this.#events.wasted({ prompt: 0, completion: 0, cached: 0, characters: speech.text.length });
    }
    return this.#stages.tts.speak(text, context, signal);
  }
}

/** Whether the answer to one is the answer to the other: the caller's last words may differ in their punctuation. */
function isSame(ahead: LlmRequest, asked: LlmRequest): boolean {
  return ahead.turnId === asked.turnId && comparable(ahead) === comparable(asked);
}

function comparable({ history, tools, instructions, toolChoice, turnIndex }: LlmRequest): string {
  const said = history.map(({ audio: _, ...item }) => item);
  const last = said.pop();
  return JSON.stringify([
    said,
    { ...last, text: plainWords(last?.text ?? "") },
    tools,
    instructions,
    toolChoice,
    turnIndex,
  ]);
}
