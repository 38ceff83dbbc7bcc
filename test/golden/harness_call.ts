/** Leads a golden call on a virtual clock, where every run gives the same lines at the same times. */
import { randomUUID } from "node:crypto";
import { audioFormatFor, frameMsFor } from "#contracts/audio_format.ts";
import { completeConfig } from "#contracts/voice_agent.ts";
import { type SentMessage, voiceLimits, voiceProtocol } from "#contracts/voice_protocol.ts";
import type { SessionCommand, SessionMessageType } from "#media/media_host.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";
import { type GoldenCall, type Line, leadCall, type Step } from "./golden_call.ts";

/** Longest call on the virtual clock. */
const limitMs = 60_000;

export async function leadOnVirtualClock({ agent, caller }: GoldenCall): Promise<Line[]> {
  const harness = new SessionHarness({ config: agent });
  const steps: { step: Step; atMs: number; after: number }[] = [];
  const note = (step: Step) => steps.push({ step, atMs: harness.clock.nowMs(), after: harness.sent.length });
  await leadCall(caller, {
    async speak(ms) {
      note({ speaks_ms: ms });
      await harness.speak(ms);
    },
    wait: (ms) => harness.run(ms),
    async waitFor(type, times) {
      if (type !== "call_ended") return harness.runUntil(type as SessionMessageType, times, limitMs);
      for (let passedMs = 0; !harness.end && passedMs < limitMs; passedMs += 20) await harness.run(20);
    },
    async send(message) {
      note({ sends: message });
      await harness.command(message as SessionCommand);
    },
  });
  return linesOf(harness, agent, steps);
}

/** Everything in order, runs of audio as one line, with the messages that the transport adds. */
function linesOf(
  harness: SessionHarness,
  agent: GoldenCall["agent"],
  steps: readonly { step: Step; atMs: number; after: number }[],
): Line[] {
  const lines: Line[] = [{ at_ms: 0, server: callStarted(agent) }];
  let seq = 1;
  harness.sent.forEach((sent, index) => {
    for (const { step, atMs, after } of steps) {
      if (after === index) lines.push({ at_ms: Math.round(atMs), caller: step });
    }
    const atMs = Math.round(sent.atMs);
    const last = lines.at(-1);
    if (sent.kind === "message") {
      seq += 1;
      lines.push({ at_ms: atMs, server: { ...sent.message, seq, t: atMs } });
    } else if (last && "server_audio_ms" in last) {
      last.server_audio_ms += sent.durationMs;
    } else {
      lines.push({ at_ms: atMs, server_audio_ms: sent.durationMs });
    }
  });
  for (const { step, atMs, after } of steps) {
    if (after === harness.sent.length) lines.push({ at_ms: Math.round(atMs), caller: step });
  }
  if (harness.end) {
    const { end, usage, atMs } = harness.end;
    const ended = { type: "call_ended", reason: end.reason, duration_ms: Math.round(end.duration_ms), usage } as const;
    lines.push({ at_ms: Math.round(atMs), server: { ...ended, seq: seq + 1, t: Math.round(atMs) } });
  }
  return lines;
}

/** As a gateway sends it. */
function callStarted(agent: GoldenCall["agent"]): SentMessage {
  const format = audioFormatFor();
  const { max_call_duration_s, idle_timeout_s } = completeConfig(agent, defaultProviders).advanced;
  return {
    type: "call_started",
    seq: 1,
    t: 0,
    call_id: randomUUID(),
    agent_id: randomUUID(),
    protocol: voiceProtocol,
    input: format,
    output: { ...format, frame_ms: frameMsFor(format) },
    limits: { max_call_duration_s, idle_timeout_s, max_message_bytes: voiceLimits.messageBytesMax },
    keepalive: { ping_interval_s: voiceLimits.pingIntervalS },
    resume: { url: "ws://127.0.0.1/", token: randomUUID(), window_s: voiceLimits.resumeWindowS },
  };
}
