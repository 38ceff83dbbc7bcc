/** What an answer did besides speaking, told to the client and counted: usage, tool steps. */
import type { AnswerEvent } from "../answering/answer.ts";
import type { CallLog } from "../session/call_log.ts";
import type { Notices } from "../session/notices.ts";

export type ReportedEvent = Exclude<
  AnswerEvent,
  { type: "text" | "clause" | "audio" | "clause_done" | "tools" | "leaves" | "failed" }
>;

export function reportEvent(event: ReportedEvent, notices: Notices, log: CallLog): void {
  switch (event.type) {
    case "usage":
      log.count(({ llm }) => {
        llm.prompt += event.prompt;
        llm.completion += event.completion;
        llm.cached += event.cached;
      });
      return;
    case "too_many_steps":
      notices.warn(
        "max_tool_steps",
        `The turn used all of its ${event.stepsMax} tool steps: it is answered with what there is`,
      );
      return;
  }
}
