/** Tools that need nothing but the session itself. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ToolSpec } from "#providers/provider.ts";
import type { ToolDesk } from "./tool_desk.ts";

const endCall: ToolSpec = {
  name: "end_call",
  description: "Ends the call, after saying `message` where one is given.",
  parameters: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
};

/** What the model reads of `end_call` is only ever read where the call went on: the caller spoke into the farewell. */
const takenBack = JSON.stringify({ ended: false, why: "the caller went on" });

/** A tool that is not there is answered to the model as an error. */
export function builtinTools(config: CallConfig): ToolDesk {
  const specs = config.end_call_enabled ? [endCall] : [];
  return {
    specs,
    sourceOf: () => "builtin",
    async run({ name, arguments: { message } }) {
      if (!specs.some((spec) => spec.name === name)) {
        return { text: `Tool ${name} is not available`, isError: true, isMissing: true };
      }
      const farewell = typeof message === "string" && message ? { farewell: message } : undefined;
      return { text: takenBack, isError: false, leaves: true, ...farewell };
    },
  };
}
