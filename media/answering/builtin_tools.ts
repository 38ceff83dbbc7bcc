/** Tools that need nothing but the session itself. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ToolSpec } from "#providers/provider.ts";
import type { SessionMessage } from "../media_host.ts";
import type { ToolCall, ToolOutcome } from "./answer.ts";

const endCall: ToolSpec = {
  name: "end_call",
  description: "Ends the call, after saying `message` where one is given.",
  parameters: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
};

/** What the model may call. */
export function toolsFor(config: CallConfig): readonly ToolSpec[] {
  return config.end_call_enabled ? [endCall] : [];
}

/** Runs a call of the model. A name that is not there is answered to the model as an error. */
export function runTool(call: ToolCall, config: CallConfig, send: (message: SessionMessage) => void): ToolOutcome {
  const event = { type: "tool_event", tool_call_id: call.id, name: call.name, source: "builtin" } as const;
  send({ ...event, phase: "started" });
  if (toolsFor(config).some(({ name }) => name === call.name)) {
    send({ ...event, phase: "completed", duration_ms: 0 });
    return { text: "", isError: false, leaves: true };
  }
  const error = `Tool ${call.name} is not available`;
  send({ ...event, phase: "failed", duration_ms: 0, error });
  send({ type: "warning", code: "not_available", message: error, fatal: false, ref: call.id });
  return { text: error, isError: true, leaves: false };
}
