/**
 * Stages of a voice pipeline as typed streams: speech to text, language model, text to speech.
 * Samples are 16-bit signed PCM, mono, at the rate that is named beside them. Every wait takes an
 * `AbortSignal`; an aborted stage ends without an error. One instance serves one call.
 */
import type { ModelSettings } from "#contracts/voice_agent.ts";

export interface Pcm {
  samples: Int16Array;
  sampleRateHz: number;
}

/** A finished utterance of the caller, speech with its 300 ms prefix, at the input's own rate. */
export interface Utterance extends Pcm {
  /** 0, 1, 2 …: the n-th end of user speech of the call. */
  index: number;
}

export interface SttResult {
  text: string;
  final: boolean;
  language?: string;
}

export interface SpeechToText {
  /** Hears speech as it comes in; partial results arrive through `onPartial`. */
  write(chunk: Pcm): void;
  onPartial?: ((result: SttResult) => void) | undefined;
  /** The end of an utterance: its final text, or an empty one when nothing was understood. */
  finish(utterance: Utterance, signal: AbortSignal): Promise<SttResult>;
  close(): void;
}

/** One thing said so far; `audio` is kept only where a provider asks for it (`echo`). */
export interface HistoryItem {
  role: "user" | "agent" | "context" | "tool";
  text: string;
  audio?: Pcm;
}

export interface LlmRequest {
  instructions: string;
  /** Oldest first; the last one is what is to be answered. */
  history: readonly HistoryItem[];
  /** 0, 1, 2 …: the n-th user turn of the call. */
  turnIndex: number;
  /** How the turn reached the agent. */
  inputKind: "speech" | "text" | "dtmf";
  /** True where the caller spoke and no recognizer is configured. */
  unrecognized: boolean;
  tools: readonly ToolSpec[];
}

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments object. */
  parameters: Readonly<Record<string, unknown>>;
}

export type LlmChunk =
  | { kind: "text"; text: string }
  /** Audio to be spoken as it is: `echo`. */
  | { kind: "audio"; audio: Pcm; text: string }
  | { kind: "tool_call"; id: string; name: string; arguments: Record<string, unknown> }
  | { kind: "usage"; prompt: number; completion: number; cached: number };

export interface LanguageModel {
  reply(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmChunk>;
  close(): void;
}

export interface TextToSpeech {
  /** Speech for one clause, in pieces as they are ready. */
  speak(text: string, context: SpeakContext, signal: AbortSignal): AsyncIterable<Pcm>;
  close(): void;
}

export interface SpeakContext {
  /** 0, 1, 2 …: the n-th agent turn of the call, for `fail_on` and `hang_on`. */
  turnIndex: number;
  /** First clause of the utterance: a provider's start delay applies once. */
  first: boolean;
}

/** A wrong setting, by its path below `config`, for example `llm.options.rules.0.patterns`. */
export interface SettingProblem {
  path: string;
  message: string;
}

/** A provider failed: the call speaks an apology or goes on, and the client sees `error` with this code. */
export class ProviderError extends Error {
  readonly stage: "stt" | "llm" | "tts";
  constructor(stage: "stt" | "llm" | "tts", message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ProviderError";
    this.stage = stage;
  }
}

/** What `registry.ts` holds for each provider name. */
export interface ProviderFactory<Stage> {
  /** Problems of the settings' `options` and `voice`; empty when all is well. Pure. */
  check(settings: ModelSettings): SettingProblem[];
  create(settings: ModelSettings): Stage;
}
