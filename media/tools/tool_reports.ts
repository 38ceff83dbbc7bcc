/** What the client, the record and the model's memory learn of the tools that a call runs. */
import { type CallTool, keptArgumentsBytesMax, keptResultBytesMax } from "#contracts/call_record.ts";
import type { Fillers } from "../answering/fillers.ts";
import type { CallLog } from "../session/call_log.ts";
import type { Notices } from "../session/notices.ts";
import type { TurnEvent } from "../session/turns.ts";
import type { AskedTool, ToolListener, ToolOutcome } from "./call_tools.ts";
import { cutText, rememberedCall, type ToolProgress, type ToolResult } from "./tool.ts";

/** Between two things that are said of tasks while they run. */
const progressPauseMs = 10_000;

export interface ToolReportsHost {
  notices: Notices;
  log: CallLog;
  fillers: Pick<Fillers, "say">;
  nowMs(): number;
  /** A moment as milliseconds since the call began. */
  callMs(atMs: number): number;
  dispatch(event: TurnEvent): void;
  onFault(cause: unknown): void;
}

export class ToolReports implements ToolListener {
  readonly #host: ToolReportsHost;
  #spokeAtMs = Number.NEGATIVE_INFINITY;

  constructor(host: ToolReportsHost) {
    this.#host = host;
  }

  started(asked: AskedTool): void {
    const { log, notices } = this.#host;
    log.count((usage) => {
      usage.tool_calls += 1;
    });
    notices.send({ ...labelsOf(asked), phase: "started" });
    log.tool(this.#kept(asked));
  }

  /** As the call's record has it. */
  #kept(asked: AskedTool, outcome?: ToolOutcome): CallTool {
    const { call, source, startedMs, taskId, runId, policy } = asked;
    const text = outcome ? cutText(shownText(asked, outcome), keptResultBytesMax) : null;
    const isDone = outcome?.phase === "completed";
    const isKept = !policy?.isSensitive && Buffer.byteLength(JSON.stringify(call.arguments)) <= keptArgumentsBytesMax;
    return {
      tool_call_id: call.id,
      name: call.name,
      source,
      state: outcome?.phase ?? "running",
      ...(taskId !== undefined && { task_id: taskId }),
      ...(runId !== undefined && { run_id: runId }),
      arguments: isKept ? call.arguments : null,
      result: isDone && !policy?.isSensitive ? text : null,
      error: isDone ? null : text,
      started_ms: Math.round(this.#host.callMs(startedMs)),
      duration_ms: outcome ? Math.round(outcome.durationMs) : null,
    };
  }

  progress(asked: AskedTool, { text, percent, runId }: ToolProgress): void {
    const { notices, log } = this.#host;
    // A run that is known has something to show for it in the record, whatever becomes of the call.
    if (runId !== undefined) log.tool(this.#kept(asked));
    if (asked.policy?.isSensitive) return;
    if (text !== undefined && asked.policy?.speaksProgress) this.#speak(asked, text);
    notices.send({
      ...labelsOf(asked),
      phase: "progress",
      ...(text !== undefined && { text }),
      ...(percent !== undefined && { percent }),
    });
  }

  /** While the answer waits for the tool, in place of a filler; otherwise when nobody speaks, and not all the time. */
  #speak({ taskId }: AskedTool, text: string): void {
    const { fillers, dispatch, nowMs } = this.#host;
    if (taskId === undefined) {
      fillers.say(text);
      return;
    }
    if (nowMs() - this.#spokeAtMs < progressPauseMs) return;
    this.#spokeAtMs = nowMs();
    dispatch({ type: "task_progress", text });
  }

  goesOn({ call }: AskedTool, result: ToolResult): void {
    this.#host.log.remember(rememberedCall(call, result));
  }

  ended(asked: AskedTool, outcome: ToolOutcome): void {
    const { phase, result, durationMs } = outcome;
    const { notices, log } = this.#host;
    log.tool(this.#kept(asked, outcome));
    const ended = { ...labelsOf(asked), phase, duration_ms: Math.round(durationMs) };
    notices.send(phase === "completed" ? ended : { ...ended, error: shownText(asked, outcome) });
    if (result.isMissing) notices.warn("not_available", result.text, asked.call.id);
    if (asked.taskId === undefined) {
      log.remember(rememberedCall(asked.call, result));
      return;
    }
    // Nobody waits for it: the model is told what came of it, and speaks when nobody else does.
    const text = `${asked.taskId} (${asked.call.name}) ${phase}: ${result.text}`;
    log.remember({ role: "context", text });
    if (phase !== "cancelled" && !result.listens) this.#host.dispatch({ type: "task_over" });
  }

  tasks(running: number): void {
    this.#host.dispatch({ type: "tasks", running });
  }

  fault(cause: unknown): void {
    this.#host.onFault(cause);
  }
}

/** What came of it, as others than the model are told. */
function shownText({ policy }: AskedTool, { phase, result }: ToolOutcome): string {
  return policy?.isSensitive && phase === "failed" ? "The tool failed" : result.text;
}

function labelsOf({ call, source, taskId, runId }: AskedTool) {
  return {
    type: "tool_event",
    tool_call_id: call.id,
    name: call.name,
    source,
    ...(taskId !== undefined && { task_id: taskId }),
    ...(runId !== undefined && { run_id: runId }),
  } as const;
}
