/** A tool as one call has it, whatever is behind it: an HTTP request, the client, an MCP server, ourselves. */
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import type { HistoryItem, LlmChunk, ToolSpec } from "#providers/provider.ts";

export type ToolCall = Extract<LlmChunk, { kind: "tool_call" }>;
export type ToolSource = ServerMessageOf<"tool_event">["source"];

export interface ToolResult {
  /** For the model: what came of it, or why it failed. */
  text: string;
  isError: boolean;
  /** The call offers no such tool. */
  isMissing?: true;
  /** The agent hangs up after this answer, with these last words where there are some. */
  leaves?: true;
  farewell?: string;
  /** The result is remembered, and nothing is said about it (a task's). */
  listens?: true;
}

export interface ToolPolicy {
  /** From its start to its result. */
  timeoutMs: number;
  /** The model is answered at once; the result is spoken when nobody speaks. */
  longRunning: boolean;
  /** What becomes of it when the caller takes the floor. */
  onInterrupt: "finish" | "cancel";
  /** The same call again is another run, also where nobody has heard of the first. */
  runsAgain?: true;
  /** Only when the caller's last turn was a yes. */
  needsYes?: true;
  /** What it is given and what it answers is for the model alone. */
  isSensitive?: true;
  /** What it tells of itself while it runs is said to the caller. */
  speaksProgress?: true;
}

const timeoutSDefault = 10;
const longTimeoutSDefault = 600;

/** How long a tool of the agent's own may take, in milliseconds, as its settings say. */
export function toolTimeoutMs({ timeout_s, long_running }: { timeout_s?: number; long_running?: boolean }): number {
  return (timeout_s ?? (long_running ? longTimeoutSDefault : timeoutSDefault)) * 1000;
}

export interface ToolProgress {
  text?: string;
  percent?: number;
  /** The run that it is, told once it is known. */
  runId?: string;
}

export interface ToolContext {
  /** The model's id of the call, which is unique within the call of the caller. */
  toolCallId: string;
  /** Its reason is an `AbortReason`. */
  signal: AbortSignal;
  progress(update: ToolProgress): void;
}

export type AbortReason = "timeout" | "interrupted" | "call_ended";

export interface Tool {
  readonly spec: ToolSpec;
  readonly source: ToolSource;
  readonly policy: ToolPolicy;
  /** What is wrong with these arguments, in words for the model. */
  problemOf?(given: Readonly<Record<string, unknown>>): string | undefined;
  /** Gives up when `context.signal` is aborted. @throws Error whose message the model is told */
  run(given: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
}

/** Why a tool failed, in words for the model. The message holds no secret and no private address. */
export class ToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ToolError";
  }
}

/** A call and what came of it, as the model remembers them. */
export function rememberedCall({ id, name, arguments: given }: ToolCall, { text, isError }: ToolResult): HistoryItem {
  return { role: "tool", text, call: { id, name, arguments: given }, ...(isError && { isError }) };
}

/** Largest result that a model is told, in bytes of UTF-8. */
export const resultBytesMax = 32 * 1024;
const cutMark = "… (cut)";

/** `text` as far as it may be told to a model; what is cut off is said to be. */
export const boundedText = (text: string): string => cutText(text, resultBytesMax);

/** `text` up to so many bytes of UTF-8; what is cut off is said to be. */
export function cutText(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  const kept = bytes.subarray(0, bytesMax - Buffer.byteLength(cutMark)).toString();
  // A character that the cut divided decodes to U+FFFD.
  return `${kept.replace(/\uFFFD+$/, "")}${cutMark}`;
}
/** Any value as a result's text: a text as it is, everything else as JSON. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
