/**
 * A golden transcript: an agent, what a caller does, and exactly what both sides then send. The
 * JSON files beside this are test vectors for any implementation of `voice.v1`.
 */
import { readdir, readFile } from "node:fs/promises";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { ClientMessage, SentMessage, ServerMessageType } from "#contracts/voice_protocol.ts";

/** One thing the caller does. Audio (silence, or a voice) goes on all the time, 20 ms a frame. */
export type Step =
  | { speaks_ms: number }
  | { waits_ms: number }
  /** Until a message of this type has come so many times in the whole call. */
  | { waits_for: ServerMessageType; times: number }
  | { sends: ClientMessage };

/** One line of the transcript; `at_ms` counts from the start of the call. */
export type Line =
  | { at_ms: number; server: SentMessage }
  | { at_ms: number; server_audio_ms: number }
  | { at_ms: number; caller: Step };

export interface GoldenCall {
  about: string;
  agent: VoiceAgentConfig;
  caller: readonly Step[];
  transcript: readonly Line[];
}

/** What a call is led with: on a virtual clock, or over a real socket. */
export interface CallDriver {
  speak(ms: number): Promise<void>;
  wait(ms: number): Promise<void>;
  waitFor(type: ServerMessageType, times: number): Promise<void>;
  send(message: ClientMessage): Promise<void>;
}

export async function leadCall(steps: readonly Step[], driver: CallDriver): Promise<void> {
  for (const step of steps) {
    if ("speaks_ms" in step) await driver.speak(step.speaks_ms);
    else if ("waits_ms" in step) await driver.wait(step.waits_ms);
    else if ("waits_for" in step) await driver.waitFor(step.waits_for, step.times);
    else await driver.send(step.sends);
  }
}

export const goldenFolder = new URL("./", import.meta.url);

export async function goldenCalls(): Promise<[file: string, call: GoldenCall][]> {
  const files = (await readdir(goldenFolder)).filter((name) => name.endsWith(".json")).sort();
  return Promise.all(
    files.map(async (file) => {
      const call = JSON.parse(await readFile(new URL(file, goldenFolder), "utf8")) as GoldenCall;
      return [file, call] satisfies [string, GoldenCall];
    }),
  );
}
