/**
 * A language model as a stream of chunks. Voice calls and workflow nodes use the same interface,
 * the built-in models (`echo`, `scripted`, `rules`) and those that call out alike. One instance
 * serves one conversation. An aborted reply ends without an error; a failed one throws `ProviderError`.
 */

/** 16-bit signed PCM, mono. */
export interface Pcm {
  samples: Int16Array;
  sampleRateHz: number;
}

/** One thing said so far; `audio` is kept only where a provider asks for it (`echo`). */
export interface HistoryItem {
  role: "user" | "agent" | "context" | "tool";
  text: string;
  audio?: Pcm;
  /** Of a `tool` item: the call failed and `text` says why. */
  isError?: boolean;
  /** Of a `tool` item: the call that it answers. */
  call?: { id: string; name: string; arguments: Record<string, unknown> };
}

export interface LlmRequest {
  /** The turn of the call, for what is told of its use. */
  turnId?: string;
  instructions: string;
  /** Oldest first; the last one is what is to be answered: the caller's words, or a tool's result. */
  history: readonly HistoryItem[];
  /** 0, 1, 2 …: the n-th user turn of the call. Tool steps of a turn keep its index. */
  turnIndex: number;
  /** How the turn reached the agent; `task`: a tool that went on by itself has ended, and nobody has asked. */
  inputKind: "speech" | "text" | "dtmf" | "task";
  /** True where the caller spoke and no recognizer is configured. */
  unrecognized: boolean;
  tools: readonly ToolSpec[];
  /** `none`: the model is to answer without calling any; it may unless given. */
  toolChoice?: "auto" | "none";
  /** JSON Schema that the reply's text must fit, where the model can be held to one. */
  outputSchema?: Readonly<Record<string, unknown>>;
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
  /** `problem`: the model's arguments could not be read, and are empty here; it is told so as the tool's error. */
  | { kind: "tool_call"; id: string; name: string; arguments: Record<string, unknown>; problem?: string }
  | { kind: "usage"; prompt: number; completion: number; cached: number };

export interface LanguageModel {
  reply(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmChunk>;
  close(): void;
}
