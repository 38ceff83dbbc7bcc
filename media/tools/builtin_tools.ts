/** Tools that an agent has without anybody having written them. */
import { type HouseToolName, houseTools } from "#contracts/house_tools.ts";
import { argumentProblem, parametersOf } from "#contracts/tool_params.ts";
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { ToolSpec } from "#providers/provider.ts";
import type { SessionMessage } from "../media_host.ts";
import type { Task } from "./call_tools.ts";
import type { RemoteTools } from "./remote_tools.ts";
import { type Tool, type ToolPolicy, textOf } from "./tool.ts";
import type { Transfers } from "./transfers.ts";

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

/** What built-in tools act on. */
export interface BuiltinHost {
  callId: string;
  remote: RemoteTools;
  send(message: SessionMessage): void;
  transfers: Transfers;
  tasks: TaskDesk;
}

export interface TaskDesk {
  readonly tasks: readonly Task[];
  cancelTask(taskId: string): boolean;
}

export function builtinTools(config: CallConfig, host: BuiltinHost): Tool[] {
  const { builtin_tools, destinations } = config;
  const configured = [...config.tools, ...config.client_tools, ...config.mcp_servers];
  const hasTasks =
    configured.some((tool) => tool.long_running) || config.app_tools.some((tool) => tool.long_running !== false);
  return [
    ...(config.end_call_enabled ? [endCall] : []),
    ...(destinations.length > 0 ? [host.transfers.tool(destinations)] : []),
    ...(hasTasks ? taskTools(host.tasks) : []),
    ...builtin_tools.map((name) => (name === "send_dtmf" ? sendDtmf(host) : houseTool(name, host))),
  ];
}

function sendDtmf({ send }: BuiltinHost): Tool {
  return {
    spec: {
      name: "send_dtmf",
      description: "Presses keys for the caller, for example in a voice menu.",
      parameters: {
        type: "object",
        properties: { digits: { type: "string", description: "0-9, *, #, A-D" } },
        required: ["digits"],
      },
    },
    source: "builtin",
    policy,
    problemOf: ({ digits }) => (/^[0-9*#A-D]{1,64}$/.test(String(digits ?? "")) ? undefined : "/digits must be keys"),
    async run({ digits }) {
      send({ type: "send_dtmf", digits: String(digits) });
      return { text: "sent", isError: false };
    },
  };
}

function taskTools(desk: TaskDesk): Tool[] {
  return [
    {
      spec: {
        name: "list_tasks",
        description: "Lists what was started and has not ended yet.",
        parameters: { type: "object", properties: {} },
      },
      source: "builtin",
      policy,
      async run() {
        return { text: JSON.stringify(desk.tasks.map(({ id, name }) => ({ task_id: id, name }))), isError: false };
      },
    },
    {
      spec: {
        name: "cancel_task",
        description: "Cancels what was started and has not ended yet.",
        parameters: parametersOf([taskId]),
      },
      source: "builtin",
      policy,
      problemOf: (given) => argumentProblem([taskId], given),
      async run({ task_id }) {
        const isThere = desk.cancelTask(String(task_id));
        return isThere
          ? { text: "cancelled", isError: false }
          : { text: `There is no task ${String(task_id)}`, isError: true };
      },
    },
  ];
}

const taskId = { name: "task_id", type: "string", required: true } as const;

/** A tool of our own service, under the agent's organization. */
function houseTool(name: HouseToolName, { callId, remote }: BuiltinHost): Tool {
  const { description, params, changes } = houseTools[name];
  return {
    spec: { name, description, parameters: parametersOf(params) },
    source: "builtin",
    policy: { ...policy, onInterrupt: changes ? "finish" : "cancel" },
    problemOf: (given) => argumentProblem(params, given),
    async run(given, { toolCallId, signal }) {
      const result = await remote.ask({ is: "house", callId, toolCallId, name, given }, signal);
      return { text: textOf(result), isError: false };
    },
  };
}
