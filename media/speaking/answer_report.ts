/** What an answer did besides speaking, told to the client and counted: usage, tools, failures. */
import type { AnswerEvent } from "../answering/answer.ts";
import type { CallLog } from "../session/call_log.ts";
import type { Notices } from "../session/notices.ts";

export type ReportedEvent = Exclude<AnswerEvent, { type: "text" | "clause" | "audio" | "clause_done" }>;

export function reportEvent(event: ReportedEvent, notices: Notices, log: CallLog): void {
  switch (event.type) {
    case "usage":
      log.count(({ llm }) => {
        llm.prompt += event.prompt;
        llm.completion += event.completion;
        llm.cached += event.cached;
      });
      return;
    case "tool_call":
      log.count((usage) => {
        usage.tool_calls += 1;
      });
      notices.send({ ...toolEvent(event), phase: "started" });
      return;
    case "tool_result":
      reportResult(event, notices);
      return;
    case "too_many_steps":
      notices.warn("max_tool_steps", `The turn used its ${event.stepsMax} tool steps and ended there`);
      return;
    case "failed":
      notices.fail(event.stage, event.cause);
      return;
  }
}

function reportResult(event: Extract<ReportedEvent, { type: "tool_result" }>, notices: Notices): void {
  const { result, call } = event;
  const labels = toolEvent(event);
  const duration_ms = Math.round(event.durationMs);
  if (result.isError) notices.send({ ...labels, phase: "failed", duration_ms, error: result.text });
  else notices.send({ ...labels, phase: "completed", duration_ms });
  if (result.isMissing) notices.warn("not_available", result.text, call.id);
}

function toolEvent({ call, source }: Extract<ReportedEvent, { type: "tool_call" | "tool_result" }>) {
  return { type: "tool_event", tool_call_id: call.id, name: call.name, source } as const;
}
