/**
 * The seam of all providers. A vendor is a folder that exports one value, `defineProvider({…})`, and a
 * line in `catalogue.ts`. Its stages are typed streams: speech to text, language model, text to speech.
 * Samples are 16-bit signed PCM, mono, at the rate that is named beside them. Every wait takes an
 * `AbortSignal`; an aborted stage ends without an error. One instance serves one call.
 */
import type { Static, TObject } from "@sinclair/typebox";
import type { ModelSettings, ModelStage } from "#contracts/voice_agent.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel, Pcm } from "./language_model.ts";
import type { WaitDeps } from "./waiting.ts";

export type { HistoryItem, LanguageModel, LlmChunk, LlmRequest, Pcm, ToolSpec } from "./language_model.ts";
export { ProviderError } from "./provider_error.ts";
export type { WaitDeps } from "./waiting.ts";

/** A finished utterance of the caller, speech with its 300 ms prefix, at the input's own rate. */
export interface Utterance extends Pcm {
  /** 0, 1, 2 …: the n-th end of user speech of the call. */
  index: number;
  /** What came after the newest speech, up to the decision that the turn is over: ends of words are in it. */
  tail?: Int16Array;
  /** The turn of the call, for what is told of its use. */
  turnId?: string;
}

export interface SttResult {
  text: string;
  final: boolean;
  language?: string;
}

export interface SpeechToText {
  /** It wants to hear everything from the call's first frame on, silence too; otherwise speech alone. */
  readonly isContinuous?: boolean;
  /** It says through `onTurnEnd` when the caller has finished; our own detection is a guard that waits longer. */
  readonly endsTurns?: boolean;
  onTurnEnd?: (() => void) | undefined;
  /** Hears what comes in; partial results arrive through `onPartial`. */
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
  /** The turn of the call, for what is told of its use. */
  turnId?: string;
  /** 0, 1, 2 …: the n-th agent turn of the call, for `fail_on` and `hang_on`. */
  turnIndex: number;
  /** First clause of the utterance: a provider's start delay applies once. */
  first: boolean;
  /** The audio of an `audio` chunk of the model, which a provider may say as it is (`echo`). */
  audio?: Pcm;
}

/** A wrong setting, by its path, for example `llm.options.rules.0.patterns`. */
export interface SettingProblem {
  path: string;
  message: string;
}

export type IgnorableSetting = "instructions" | "model" | "voice" | "language" | "temperature";

/** What a vendor is reached with. */
export interface ProviderAccess {
  /** The secret of the connection. */
  secret: string;
  /** The address of the settings or of the connection; the vendor's own unless given. */
  baseUrl?: string;
  /** Opens the connections: the guarded one, but to a server of the operator's own. */
  http: GuardedHttp;
  /** What the operator set for agents that name no model or voice. */
  defaults?: { model?: string; voice?: string };
}

/** What a stage is opened with: settings that were checked, and options with every default filled in. */
export interface StageRequest<Options> {
  settings: ModelSettings;
  options: Options;
  waits: WaitDeps;
}

/** The same for a provider with `secrets`. */
export interface VendorStageRequest<Options> extends StageRequest<Options> {
  access: ProviderAccess;
}

/** The stages, by the names that settings have for them. */
export interface StageKinds {
  stt: SpeechToText;
  llm: LanguageModel;
  tts: TextToSpeech;
}

/** What the file of a stage exports. */
export interface StageModule<Options, Stage> extends StageLife {
  /** Opens the stage for one call. */
  open(request: VendorStageRequest<Options>): Stage;
}

/** Once for each thread, where a stage needs it. */
export interface StageLife {
  /** Loads what the first call would otherwise wait for. */
  warmUp?(): Promise<void>;
  /** Stops what the stage runs on this thread. */
  shutDown?(): Promise<void>;
}

/** One stage of a provider: what is known of it without its code, and how to load the code. */
export interface StageDefinition<Options extends TObject, Stage> {
  /** What it does, in one line, for the table of providers. */
  does: string;
  options: Options;
  /** Problems of options that fit the schema, by their path below `options`. Pure. */
  check?(options: Partial<Static<Options>>): SettingProblem[];
  /** Voices that `voice` may name, the first one by default; any text unless given. */
  voices?: readonly string[];
  /** The vendor's model that settings mean which name none. */
  defaultModel?: string;
  /** There is no model of this vendor that settings could mean without naming one. */
  needsModel?: true;
  /** The same of voices. */
  needsVoice?: true;
  /** Settings that it does nothing with: whoever sets one is warned. `instructions`: what the client adds as context too. */
  ignores?: readonly IgnorableSetting[];
  /** Its replies depend on the request alone: it may be asked for one that nobody takes. */
  isStateless?: true;
  /** The vendor's API has no such setting. */
  takesNoTemperature?: true;
  load(): Promise<StageModule<Static<Options>, Stage>>;
}

interface ProviderName {
  /** As `provider` of settings has it. */
  name: string;
  /** How the vendor is reached. A provider without is built in: it needs no vendor. */
  secrets?: VendorKey;
  /** A server that the operator runs, and the environment names: no agent's settings say where it is. */
  ownServer?: true;
}

/** The operator's own servers, by stage. Their addresses are not guarded: no user gives them. */
export type OwnServers = { readonly [S in ModelStage]?: OwnServer };

export interface OwnServer {
  url: string;
  key?: string;
  model?: string;
  voice?: string;
}

/** A vendor's key, and how to find out whether the vendor takes it. */
export interface VendorKey {
  /** The kind of connection that holds it. */
  connection: string;
  /** The vendor's own address, for connections that have none. */
  baseUrl: string;
  /** `GET {baseUrl}{path}` costs nothing and is answered with 2xx to who has a key. */
  probe: { path: string; headers(secret: string): Record<string, string> };
}

/** A provider as the catalogue holds it. */
export type Provider = ProviderName & { [S in ModelStage]?: StageDefinition<TObject, StageKinds[S]> };

/** Sees to it that the code of each stage takes the options that its schema allows. */
export function defineProvider<Stt extends TObject, Llm extends TObject, Tts extends TObject>(
  provider: ProviderName & {
    stt?: StageDefinition<Stt, SpeechToText>;
    llm?: StageDefinition<Llm, LanguageModel>;
    tts?: StageDefinition<Tts, TextToSpeech>;
  },
): Provider {
  return provider as unknown as Provider;
}
