/**
 * Stages of a voice pipeline as typed streams: speech to text, language model, text to speech.
 * Samples are 16-bit signed PCM, mono, at the rate that is named beside them. Every wait takes an
 * `AbortSignal`; an aborted stage ends without an error. One instance serves one call.
 */
import type { SettingProblem } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import type { Pcm } from "#outbound/models/language_model.ts";
import type { WaitDeps } from "#outbound/models/waiting.ts";

export type { SettingProblem } from "#contracts/provider_options.ts";
export type {
  HistoryItem,
  LanguageModel,
  LlmChunk,
  LlmRequest,
  Pcm,
  ToolSpec,
} from "#outbound/models/language_model.ts";
export { ProviderError } from "#outbound/models/provider_error.ts";
export type { WaitDeps } from "#outbound/models/waiting.ts";

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
  /** The end of an utterance: its final text, or an empty one when nothing was understood or `signal` is aborted. */
  finish(utterance: Utterance, signal: AbortSignal): Promise<SttResult>;
  close(): void;
}

export interface TextToSpeech {
  /** Speech for one clause, in pieces as they are ready. The pieces are the receiver's to keep. */
  speak(text: string, context: SpeakContext, signal: AbortSignal): AsyncIterable<Pcm>;
  close(): void;
}

export interface SpeakContext {
  /** 0, 1, 2 …: the n-th agent turn of the call, for `fail_on` and `hang_on`. */
  turnIndex: number;
  /** First clause of the utterance: a provider's start delay applies once. */
  first: boolean;
  /** The audio of an `audio` chunk of the model, which a provider may say as it is (`echo`). */
  audio?: Pcm;
}

/** What `registry.ts` holds for each provider name. */
export interface ProviderFactory<Stage> {
  /** Problems of the settings' `options` and `voice`; empty when all is well. Pure. */
  check(settings: ModelSettings): SettingProblem[];
  /** @throws Error when `check` finds a problem */
  create(settings: ModelSettings, deps?: WaitDeps): Stage;
}
