/** Records between the thread that owns the sockets and a media thread (`batch.ts`). */
import type { MessagePort } from "node:worker_threads";
import type { CallEnd, CallFailure, CallProgress } from "#contracts/call_record.ts";
import type { EndReason, Usage } from "#contracts/voice_protocol.ts";
import type { StageWorld } from "#providers/stages.ts";
import type { VadEngine } from "../hearing/vad/create_vad.ts";
import type { SessionCommand, SessionMessage, SessionSpec } from "../media_host.ts";

/** To the media thread. The value of `audio` is its arrival, those of `unsent` and `delivered` milliseconds. */
export const toThread = {
  open: 1,
  audio: 2,
  command: 3,
  unsent: 4,
  pause: 5,
  resume: 6,
  end: 7,
  delivered: 8,
} as const;
/** From the media thread. The value of `audio` is its duration in milliseconds. */
export const fromThread = { audio: 1, message: 2, record: 3, ended: 4, fault: 5, dropUnsent: 6 } as const;

/** Objects of the records, by kind. */
export interface ToThreadObjects {
  open: SessionSpec;
  command: SessionCommand;
  end: { reason: EndReason; errorCode?: CallFailure };
}
export interface FromThreadObjects {
  message: SessionMessage;
  record: Omit<CallProgress, "call_id">;
  ended: { end: CallEnd; usage: Usage };
  /** For the log: see `SessionDeps.onFault`. */
  fault: { callId: string; cause: unknown };
}

/** Given to a media thread when it starts; it answers `"ready"` once everything is loaded, and then only batches. */
export interface ThreadSettings {
  vad: VadEngine;
  /** What the stages of calls may reach. */
  world: StageWorld;
}
/** Gives a media thread its way to the tools' thread. */
export interface ToolsAreHere {
  toolPort: MessagePort;
}
/** Tells a media thread to end its calls and leave. */
export const closeThread = "close";
export const threadReady = "ready";

/** Bytes under way to the other thread, not yet worked off, above which it counts as congested. */
export const underWayBytesMax = 16 * 1024 * 1024;
