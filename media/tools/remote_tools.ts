/**
 * Tools that call out run on a thread of their own: their TLS, their JSON and their waiting cost no frame
 * of audio. This is the side of those who ask; `tool_runner.ts` answers.
 */
import type { MessagePort } from "node:worker_threads";
import type { HttpToolDefinition } from "#outbound/http_tool.ts";
import { type AbortReason, ToolError, type ToolProgress } from "./tool.ts";

/** Where a tool's server is, with the headers that open it. */
export interface McpTarget {
  url: string;
  headers: Readonly<Record<string, string>>;
}

export type RemoteRequest =
  | { is: "http"; tool: HttpToolDefinition; given: Record<string, unknown>; headers: Record<string, string> }
  | { is: "mcp_list"; server: McpTarget; callId: string }
  | { is: "mcp_call"; server: McpTarget; callId: string; name: string; given: Record<string, unknown> }
  | {
      is: "app";
      callId: string;
      toolCallId: string;
      appId: string;
      given: Record<string, unknown>;
      endsWithCall: boolean;
    }
  /** A tool of our own api, on behalf of the call. */
  | { is: "house"; callId: string; toolCallId: string; name: string; given: Record<string, unknown> };

const away = "The tools cannot be reached at the moment";

export interface RemoteTools {
  /** Gives up when `signal` is aborted. @throws ToolError in words for the model */
  ask(request: RemoteRequest, signal: AbortSignal, progress?: (update: ToolProgress) => void): Promise<unknown>;
}

export const noRemoteTools: RemoteTools = {
  ask: async () => {
    throw new ToolError(away);
  },
};

/** Over the port, to the tools' thread and back. */
export type ToTools = { id: number; request: RemoteRequest } | { id: number; abort: AbortReason };
export type FromTools =
  | { id: number; result: unknown }
  | { id: number; progress: ToolProgress }
  | { id: number; error: string };

interface Asked {
  resolve(result: unknown): void;
  reject(cause: unknown): void;
  progress?: ((update: ToolProgress) => void) | undefined;
}

/** Asks over a port, which may come later and be replaced when the other thread was lost. */
export class ToolPort implements RemoteTools {
  readonly #asked = new Map<number, Asked>();
  #port: MessagePort | undefined;
  #nextId = 1;

  connect(port: MessagePort): void {
    this.#port = port;
    port.on("message", (message: FromTools) => this.#take(message));
    port.on("close", () => {
      if (this.#port === port) this.#port = undefined;
      for (const { reject } of this.#asked.values()) reject(new ToolError(away));
      this.#asked.clear();
    });
    // Nobody waits for tools alone.
    port.unref();
  }

  async ask(request: RemoteRequest, signal: AbortSignal, progress?: (update: ToolProgress) => void): Promise<unknown> {
    const port = this.#port;
    if (!port) throw new ToolError(away);
    signal.throwIfAborted();
    const id = this.#nextId;
    this.#nextId += 1;
    const post = (message: ToTools) => port.postMessage(message);
    const onAbort = () => {
      post({ id, abort: signal.reason as AbortReason });
      this.#asked.get(id)?.reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.#asked.set(id, { resolve, reject, progress });
        post({ id, request });
      });
    } finally {
      this.#asked.delete(id);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #take(message: FromTools): void {
    const asked = this.#asked.get(message.id);
    if (!asked) return;
    if ("progress" in message) asked.progress?.(message.progress);
    else if ("error" in message) asked.reject(new ToolError(message.error));
    else asked.resolve(message.result);
  }
}
