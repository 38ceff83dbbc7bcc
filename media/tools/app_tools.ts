/** Tools that are runs of apps: started once for each call, followed to their end, cancelled when they are given up. */
import type { CallAppTool } from "#contracts/voice_agent.ts";
import { mannersOf } from "./manners.ts";
import type { RemoteTools } from "./remote_tools.ts";
import { type Tool, textOf } from "./tool.ts";

const timeoutSDefault = 600;

export interface AppToolHost {
  callId: string;
  remote: RemoteTools;
}

export function appToolOf(config: CallAppTool, { callId, remote }: AppToolHost): Tool {
  const { name, app_id, description = "", long_running = true, progress = "events" } = config;
  return {
    spec: { name, description, parameters: config.parameters ?? { type: "object", properties: {} } },
    source: "app",
    policy: {
      timeoutMs: (config.timeout_s ?? timeoutSDefault) * 1000,
      longRunning: long_running,
      onInterrupt: config.on_interrupt ?? "finish",
      ...mannersOf(config),
      ...(progress === "spoken" && { speaksProgress: true }),
    },
    async run(given, { toolCallId, signal, progress: tell }) {
      const endsWithCall = config.on_call_end === "cancel";
      const request = { is: "app", callId, toolCallId, appId: app_id, given, endsWithCall } as const;
      const output = await remote.ask(request, signal, ({ runId, ...update }) => {
        if (runId !== undefined) tell({ runId });
        else if (progress !== "none") tell(update);
      });
      return { text: textOf(output), isError: false };
    },
  };
}
