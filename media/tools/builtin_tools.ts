/** Tools that need nothing but the session itself. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ToolSpec } from "#providers/provider.ts";
import type { Tool, ToolPolicy } from "./tool.ts";

const policy: ToolPolicy = { timeoutMs: 10_000, longRunning: false, onInterrupt: "finish" };

const endCallSpec: ToolSpec = {
  name: "end_call",
  description: "Ends the call, after saying `message` where one is given.",
  parameters: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
};

/** What the model reads of `end_call` is only ever read where the call went on: the caller spoke into the farewell. */
const takenBack = JSON.stringify({ ended: false, why: "the caller went on" });

const endCall: Tool = {
  spec: endCallSpec,
  source: "builtin",
  policy,
  async run({ message }) {
    const farewell = typeof message === "string" && message ? { farewell: message } : undefined;
    return { text: takenBack, isError: false, leaves: true, ...farewell };
  },
};

export function builtinTools(config: CallConfig): Tool[] {
  return config.end_call_enabled ? [endCall] : [];
}
