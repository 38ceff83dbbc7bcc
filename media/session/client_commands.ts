/** What a client's message does to its call. */
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { CallerAudio } from "../hearing/caller_audio.ts";
import type { ClientWords } from "../hearing/client_recognizer.ts";
import type { SessionCommand } from "../media_host.ts";
import type { AgentSpeech } from "../speaking/agent_speech.ts";
import type { ClientTools } from "../tools/client_tools.ts";
import type { Transfers } from "../tools/transfers.ts";
import type { CallLog } from "./call_log.ts";
import type { Floor } from "./floor.ts";
import type { Notices } from "./notices.ts";

/** The parts of a session that messages act on. */
export interface CommandedParts {
  floor: Floor;
  caller: CallerAudio;
  speech: AgentSpeech;
  log: CallLog;
  notices: Notices;
  /** The agent's model does nothing with context. */
  ignoresContext: boolean;
  clientTools: ClientTools;
  transfers: Transfers;
  /** The client recognizes speech itself. */
  listenToClient(): void;
  takeClientWords(words: ClientWords): void;
}

export function carryOutCommand(command: SessionCommand, parts: CommandedParts, nowMs: number): void {
  const { floor, caller, speech, log } = parts;
  switch (command.type) {
    case "start":
      takeCapabilities(command, parts);
      return;
    case "mark":
      speech.heardMark(command.name, command.cleared === true, nowMs);
      return;
    case "interrupt":
      floor.dispatch({ type: "interrupt" });
      return;
    case "dtmf":
      floor.dispatch({ type: "digit", digit: command.digit });
      return;
    case "user_message":
      floor.dispatch({ type: "typed", text: command.text, urgency: command.urgency ?? "soon" });
      return;
    case "context_update":
      log.remember({ role: "context", text: command.text });
      if (parts.ignoresContext)
        parts.notices.warn("setting_ignored", "The agent's model acts on no context", command.type);
      return;
    case "say": {
      const { text, behavior = "default", interruptible = true } = command;
      floor.dispatch({ type: "say", text, behavior, interruptible });
      return;
    }
    case "mute":
      caller.isMuted = true;
      return;
    case "unmute":
      caller.isMuted = false;
      return;
    case "user_activity":
      floor.dispatch({ type: "activity" });
      return;
    case "hang_up":
      floor.dispatch({ type: "hang_up", message: command.message?.trim() || undefined });
      return;
    case "leave":
      floor.dispatch({ type: "leave", reason: command.reason });
      return;
    case "client_tool_result":
      parts.clientTools.take(command);
      return;
    case "client_transcript":
      parts.takeClientWords(command);
      return;
    case "transfer_result":
      parts.transfers.take(command);
      return;
  }
}

function takeCapabilities(
  start: Extract<SessionCommand, { type: "start" }>,
  { floor, speech, listenToClient }: Pick<CommandedParts, "floor" | "speech" | "listenToClient">,
): void {
  const { marks, clear, text_only, echo_cancellation, transcripts } = start.capabilities ?? {};
  if (transcripts) listenToClient();
  // A client that cannot drop what it buffered must not hold much of it, or nobody can interrupt the agent.
  speech.setCapabilities({ marks, leadMs: clear === false ? voiceLimits.clientBufferMsMin : undefined });
  if (text_only !== undefined) speech.isTextOnly = text_only;
  if (text_only && speech.isHeard) floor.dispatch({ type: "interrupt" });
  if (echo_cancellation !== undefined) floor.dispatch({ type: "echo_cancellation", present: echo_cancellation });
}
