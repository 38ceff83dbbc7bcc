/**
 * The stages of an answer: recognizer, model, text to speech. The model streams; every finished
 * clause goes to text to speech at once, and speech is pulled only while there is room to play it.
 * Whatever fails or hangs is reported with its stage, and the call goes on.
 */
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { createClauseSplitter } from "#providers/clauses.ts";
import type {
  HistoryItem,
  LanguageModel,
  LlmChunk,
  LlmRequest,
  Pcm,
  SpeechToText,
  SttResult,
  TextToSpeech,
  ToolSpec,
  Utterance,
} from "#providers/provider.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { type Clause, ClauseQueue } from "./clause_queue.ts";

/** A stage that gives no sign for this long has failed. */
export const sttTimeoutMs = 10_000;
export const llmTimeoutMs = 15_000;
export const ttsTimeoutMs = 10_000;

export type FailedStage = "stt" | "llm" | "tts";

/** A stage gave no sign for too long. */
export class StageTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`No answer within ${timeoutMs} ms`);
    this.name = "StageTimeoutError";
  }
}

export interface Stages {
  stt: SpeechToText | undefined;
  llm: LanguageModel;
  tts: TextToSpeech;
}

/** Stages by settings: the loaded ones of `#providers/stages.ts`, or a test's own. */
export interface StageFactories {
  stt(settings: ModelSettings): SpeechToText;
  llm(settings: ModelSettings): LanguageModel;
  tts(settings: ModelSettings): TextToSpeech;
}

/** What an answer tells its session, in order, and where it waits. */
export interface AnswerHooks {
  /** False once the answer must stop; waits while a barge-in holds it. */
  mayGoOn(): Promise<boolean>;
  /** As `mayGoOn`, and waits for room in the playout. */
  mayPush(): Promise<boolean>;
  /** Speech is wanted: false in a text-only call. */
  readonly spoken: boolean;
  /** The model was asked, gave its first chunk, or had its first clause complete; text to speech was asked, or gave audio. */
  note(moment: "llm_asked" | "llm_first" | "clause_first" | "tts_asked" | "tts_first"): void;
  /** The model's text grew by a clause. */
  textGrew(delta: string): void;
  clauseBegins(text: string): void;
  audio(pcm: Pcm): void;
  clauseEnds(): void;
  used(usage: { prompt: number; completion: number; cached: number }): void;
  charactersSpoken(count: number): void;
  /** Runs a tool; what it answers becomes the history's `tool` item. `leaves` ends the call after the answer. */
  runTool(call: ToolCall): ToolOutcome;
  tooManySteps(): void;
  failed(stage: FailedStage, cause: unknown): void;
}

export interface ToolOutcome {
  text: string;
  isError: boolean;
  leaves: boolean;
}

export type ToolCall = Extract<LlmChunk, { kind: "tool_call" }>;

export interface AnswerRequest {
  instructions: string;
  /** Read anew for each step: tool results are appended to it. */
  history: HistoryItem[];
  turnIndex: number;
  inputKind: LlmRequest["inputKind"];
  unrecognized: boolean;
  tools: readonly ToolSpec[];
  toolStepsMax: number;
}

/** Gives up on `promise` when `signal` is aborted or after `timeoutMs`. */
async function within<T>(
  promise: Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<T> {
  let cancel = () => {};
  const givenUp = new Promise<never>((_, reject) => {
    const stop = scheduler.after(timeoutMs, () => reject(new StageTimeoutError(timeoutMs)));
    const onAbort = () => reject(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    cancel = () => {
      stop();
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) onAbort();
  });
  // The loser of the race may still reject later: nobody waits for it any more.
  promise.catch(() => {});
  try {
    return await Promise.race([promise, givenUp]);
  } finally {
    cancel();
  }
}

/** Pulls a stage's stream, each step bounded in time. A stream that hangs is left behind, never waited for. */
async function* pull<T>(
  stream: AsyncIterable<T>,
  timeoutMs: number,
  signal: AbortSignal,
  scheduler: Scheduler,
): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      const next = await within(iterator.next(), timeoutMs, signal, scheduler);
      isDone = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    if (!isDone) iterator.return?.()?.catch(() => {});
  }
}

/** Runs `stage` under a signal that is aborted with `signal`, and when the stage has failed. */
async function underOwnSignal(signal: AbortSignal, stage: (own: AbortSignal) => Promise<void>): Promise<void> {
  const own = new AbortController();
  const follow = () => own.abort();
  if (signal.aborted) own.abort();
  signal.addEventListener("abort", follow, { once: true });
  try {
    await stage(own.signal);
  } finally {
    signal.removeEventListener("abort", follow);
    own.abort();
  }
}

/** The recognizer's final answer. A failure is reported and reads as "understood nothing". */
export async function recognize(
  stt: SpeechToText,
  utterance: Utterance,
  signal: AbortSignal,
  scheduler: Scheduler,
  onFailure: (cause: unknown) => void,
): Promise<SttResult> {
  let result: SttResult = { text: "", final: true };
  try {
    await underOwnSignal(signal, async (own) => {
      result = await within(stt.finish(utterance, own), sttTimeoutMs, own, scheduler);
    });
  } catch (cause) {
    if (!signal.aborted) onFailure(cause);
  }
  return result;
}

/** Answers a turn: the model's text, spoken clause by clause while it streams. Never throws. */
export async function answer(
  request: AnswerRequest,
  stages: Stages,
  speechIndex: number,
  hooks: AnswerHooks,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<void> {
  const clauses = new ClauseQueue();
  const speaking = speakClauses(clauses, stages.tts, speechIndex, hooks, signal, scheduler);
  const stop = () => clauses.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await underOwnSignal(signal, (own) => generate(request, stages.llm, clauses, hooks, own, scheduler));
  } catch (cause) {
    if (!signal.aborted) hooks.failed("llm", cause);
  } finally {
    clauses.close();
  }
  await speaking;
  signal.removeEventListener("abort", stop);
}

/** Says a given text. Never throws. */
export async function say(
  text: string,
  tts: TextToSpeech,
  speechIndex: number,
  hooks: AnswerHooks,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<void> {
  const clauses = new ClauseQueue();
  const speaking = speakClauses(clauses, tts, speechIndex, hooks, signal, scheduler);
  const stop = () => clauses.close();
  signal.addEventListener("abort", stop, { once: true });
  const splitter = createClauseSplitter();
  for (const clause of [...splitter.push(text), ...splitter.flush()]) await putText(clause, clauses, hooks);
  clauses.close();
  await speaking;
  signal.removeEventListener("abort", stop);
}

/** Asks the model, step by step while it calls tools, and hands its clauses on. */
async function generate(
  request: AnswerRequest,
  llm: LanguageModel,
  clauses: ClauseQueue,
  hooks: AnswerHooks,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<void> {
  for (let step = 0; ; step += 1) {
    const calls: ToolCall[] = [];
    const splitter = createClauseSplitter();
    hooks.note("llm_asked");
    const stream = llm.reply({ ...request, history: [...request.history] }, signal);
    for await (const chunk of pull(stream, llmTimeoutMs, signal, scheduler)) {
      if (!(await hooks.mayGoOn())) return;
      if (chunk.kind === "usage") hooks.used(chunk);
      else if (chunk.kind === "tool_call") calls.push(chunk);
      else {
        hooks.note("llm_first");
        for (const clause of chunk.kind === "text" ? splitter.push(chunk.text) : splitter.flush()) {
          await putText(clause, clauses, hooks);
        }
        if (chunk.kind === "audio") {
          hooks.note("clause_first");
          hooks.textGrew(chunk.text);
          await clauses.put({ text: chunk.text, audio: chunk.audio });
        }
      }
    }
    if (!(await hooks.mayGoOn())) return;
    for (const clause of splitter.flush()) await putText(clause, clauses, hooks);
    if (calls.length === 0) return;
    if (step >= request.toolStepsMax) return hooks.tooManySteps();
    for (const call of calls) {
      const outcome = hooks.runTool(call);
      const { message: farewell } = call.arguments;
      if (outcome.leaves && typeof farewell === "string" && farewell) await putText(farewell, clauses, hooks);
      if (outcome.leaves) return;
      request.history.push({ role: "tool", text: outcome.text, ...(outcome.isError && { isError: true }) });
    }
  }
}

async function putText(text: string, clauses: ClauseQueue, hooks: AnswerHooks): Promise<void> {
  hooks.note("clause_first");
  hooks.textGrew(text);
  await clauses.put({ text });
}

/** Turns clauses into speech until the queue is closed. After a failure the rest is only text. */
async function speakClauses(
  clauses: ClauseQueue,
  tts: TextToSpeech,
  speechIndex: number,
  hooks: AnswerHooks,
  signal: AbortSignal,
  scheduler: Scheduler,
): Promise<void> {
  let isFirst = true;
  let hasFailed = false;
  for (let clause = await clauses.take(); clause && !signal.aborted; clause = await clauses.take()) {
    if (hasFailed || !hooks.spoken || !clause.text.trim()) continue;
    const said: Clause = clause;
    const context = { turnIndex: speechIndex, first: isFirst, ...(said.audio && { audio: said.audio }) };
    isFirst = false;
    try {
      if (!(await hooks.mayPush())) return;
      await underOwnSignal(signal, async (own) => {
        hooks.note("tts_asked");
        hooks.clauseBegins(said.text);
        hooks.charactersSpoken(said.text.length);
        for await (const pcm of pull(tts.speak(said.text, context, own), ttsTimeoutMs, own, scheduler)) {
          hooks.note("tts_first");
          if (!(await hooks.mayPush())) return;
          hooks.audio(pcm);
        }
        hooks.clauseEnds();
      });
    } catch (cause) {
      if (signal.aborted) return;
      hasFailed = true;
      hooks.failed("tts", cause);
    }
  }
}
