/** `npm run loadtest -- rooms`: the load of `calls`, in LiveKit rooms. */
import { dispose } from "@livekit/rtc-node";
import { measureCalls, prepareSpeech } from "../calls/command.ts";
import { callsOptions } from "../calls/options.ts";
import { type Dial, runCalls } from "../calls/run.ts";
import { OptionsError } from "../kit/option_values.ts";
import { progress } from "../kit/terminal.ts";
import { RoomVoiceCaller } from "./room_voice_caller.ts";

export const roomsUsage = `npm run loadtest -- rooms [options]
  --calls N          callers (default 20)
  --connect-rate N   new calls a second (default 1)
  and as for calls: --seconds, --vad, --media-threads, --slots, --url, --data-dir, --allow-remote, --json;
  the machine needs a livekit-server on the PATH, or LIVEKIT_URL and its keys in the environment`;

/** What a room decides by itself. */
const fixed = ["--format", "--sample-rate", "--client-buffer-ms", "--transport"];

const roomDial: Dial = async (management, agentId, firstFrame, shared) =>
  new RoomVoiceCaller(() => management.openRoom(agentId), firstFrame, shared);

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function rooms(args: readonly string[]): Promise<void> {
  const foreign = args.find((arg) => fixed.some((name) => arg === name || arg.startsWith(`${name}=`)));
  if (foreign) throw new OptionsError(`${foreign}: Expected no such option: a room decides it`);
  const options = callsOptions(["--calls", "20", "--connect-rate", "1", "--transport", "uws", ...args]);
  const speech = await prepareSpeech(options);
  try {
    await measureCalls(options, "calls in rooms", (target) =>
      runCalls(target, speech, options, progress, { dial: roomDial }),
    );
  } finally {
    await dispose();
  }
}
