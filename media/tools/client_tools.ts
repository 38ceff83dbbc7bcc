/** Tools that the client carries out: it is asked by `client_tool_call` and answers with `client_tool_result`. */
import { argumentProblem, parametersOf } from "#contracts/tool_params.ts";
import type { ClientTool } from "#contracts/voice_agent.ts";
import type { ClientMessageOf } from "#contracts/voice_protocol.ts";
import type { Notices } from "../session/notices.ts";
import { mannersOf } from "./manners.ts";
import { type AbortReason, type Tool, type ToolContext, type ToolResult, textOf, toolTimeoutMs } from "./tool.ts";

interface Asked {
  context: ToolContext;
  resolve(result: ToolResult): void;
}

export class ClientTools {
  readonly #notices: Notices;
  readonly #asked = new Map<string, Asked>();

  constructor(notices: Notices) {
    this.#notices = notices;
  }

  of(config: ClientTool): Tool {
    const { name, description = "", params = [], expects_response = true, long_running = false } = config;
    const timeoutMs = toolTimeoutMs(config);
    return {
      spec: { name, description, parameters: parametersOf(params) },
      source: "client",
      policy: {
        timeoutMs,
        longRunning: long_running,
        onInterrupt: config.on_interrupt ?? "finish",
        ...mannersOf(config),
      },
      problemOf: (given) => argumentProblem(params, given),
      run: (given, context) => {
        this.#notices.send({
          type: "client_tool_call",
          tool_call_id: context.toolCallId,
          name,
          arguments: given,
          expects_response,
          long_running,
          timeout_ms: timeoutMs,
        });
        return expects_response ? this.#answerTo(context) : Promise.resolve({ text: "sent", isError: false });
      },
    };
  }

  #answerTo(context: ToolContext): Promise<ToolResult> {
    const { toolCallId, signal } = context;
    return new Promise((resolve, reject) => {
      this.#asked.set(toolCallId, { context, resolve });
      signal.addEventListener(
        "abort",
        () => {
          if (!this.#asked.delete(toolCallId)) return;
          this.#notices.send({
            type: "client_tool_cancel",
            tool_call_id: toolCallId,
            reason: signal.reason as AbortReason,
          });
          reject(signal.reason);
        },
        { once: true },
      );
    });
  }

  take(message: ClientMessageOf<"client_tool_result">): void {
    const { tool_call_id, result, is_error = false, final = true, reaction } = message;
    const asked = this.#asked.get(tool_call_id);
    if (!asked) {
      this.#notices.warn("late_tool_result", "Nobody waits for the result of this tool call", tool_call_id);
      return;
    }
    const text = textOf(result ?? "");
    if (!final) {
      asked.context.progress({ text });
      return;
    }
    this.#asked.delete(tool_call_id);
    asked.resolve({ text, isError: is_error, ...(reaction === "listen" && { listens: true }) });
  }
}
