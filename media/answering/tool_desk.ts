/** The tools that one call offers its model. */
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
}

export interface ToolDesk {
  readonly specs: readonly ToolSpec[];
  sourceOf(name: string): ToolSource;
  /** Answers the model's call. A failure is a result; it gives up when `signal` is aborted. */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
}

/** A call and what came of it, as the model remembers them. */
export function rememberedCall({ id, name, arguments: given }: ToolCall, { text, isError }: ToolResult): HistoryItem {
  return { role: "tool", text, call: { id, name, arguments: given }, ...(isError && { isError }) };
}
