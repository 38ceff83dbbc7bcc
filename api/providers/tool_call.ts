/** A model's call of a tool, put together from what a vendor streamed. */
import type { LlmChunk } from "./language_model.ts";

/** A call that cannot be read is a call all the same: the model is told, and may call again. */
export function toolCallOf(id: string, name: string, written: string): LlmChunk {
  try {
    const parsed: unknown = JSON.parse(written || "{}");
    if (parsed !== null && typeof parsed === "object" && !Array.isArray(parsed)) {
      return { kind: "tool_call", id, name, arguments: parsed as Record<string, unknown> };
    }
  } catch {
    // Told below, like every other value that is no object.
  }
  return { kind: "tool_call", id, name, arguments: {}, problem: "expected a JSON object as arguments" };
}
