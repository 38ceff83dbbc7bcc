/**
 * Plays a WAV file to the echo agent at real time and saves what it answers.
 *
 *     npm run example:echo -- [question.wav] [answer.wav]
 *
 * The file must be 16-bit mono PCM at 8, 16, 24, 32, 44.1 or 48 kHz. Without one it plays hello.wav.
 */
import { WebSocket } from "ws";
import type { SentMessage } from "#contracts/voice_protocol.ts";
import { readBootstrap } from "./config.ts";
import { reserveCall } from "./reservation.ts";
import { readWav, writeWav } from "./wav_file.ts";

const frameMs = 20;
const answerWithinMs = 15_000;

async function main(question: string | URL, answerPath: string): Promise<void> {
  const bootstrap = await readBootstrap();
  const { pcm, sampleRateHz } = await readWav(question);
  const format = { encoding: "pcm_s16le", sample_rate: sampleRateHz };
  const reservation = await reserveCall(bootstrap, bootstrap.echo_agent_id, {
    audio_format: format,
    output_audio_format: format,
  });
  console.log(`Reserved call ${reservation.call_id}`);

  const socket = new WebSocket(reservation.websocket_url, "voice.v1", { perMessageDeflate: false });
  const answer: Buffer[] = [];
  let endReason = "";
  let microphone: Microphone | undefined;

  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      answer.push(data); // a binary message is audio and nothing else
      return;
    }
    const event = JSON.parse(data.toString()) as SentMessage;
    switch (event.type) {
      case "call_started":
        console.log(`Connected, playing ${(pcm.length / 2 / sampleRateHz).toFixed(1)} s of speech`);
        microphone = play(socket, pcm, sampleRateHz);
        break;
      case "mark": // a file has "played" what it has received; a loudspeaker would answer later
        socket.send(JSON.stringify({ type: "mark", name: event.name }));
        break;
      case "agent_speech_started":
        console.log("The agent answers");
        break;
      case "agent_speech_done":
        if (microphone?.isSilent()) socket.send(JSON.stringify({ type: "hang_up" }));
        break;
      case "warning":
      case "error":
        console.log(`${event.type}: ${event.message}`);
        break;
      case "call_ended":
        endReason = event.reason;
        break;
    }
  });

  await closed(socket);
  microphone?.stop();
  if (answer.length === 0) throw new Error("The agent did not answer: is there speech in the file?");
  await writeWav(answerPath, { sampleRateHz, pcm: Buffer.concat(answer) });
  const seconds = Buffer.concat(answer).length / 2 / sampleRateHz;
  console.log(`Call ended (${endReason}); ${seconds.toFixed(1)} s of answer saved in ${answerPath}`);
}

interface Microphone {
  /** Whether the file is over and only silence is being sent. */
  isSilent(): boolean;
  stop(): void;
}

/**
 * Sends one frame each 20 ms, the file first and then silence, as a microphone would. The clock
 * decides how many frames are due, so that late timers do not slow the speech down.
 */
function play(socket: WebSocket, pcm: Buffer, sampleRateHz: number): Microphone {
  const frameBytes = (sampleRateHz / 1000) * frameMs * 2;
  const silence = Buffer.alloc(frameBytes);
  const startedAt = performance.now();
  let framesSent = 0;
  const timer = setInterval(() => {
    const playedMs = performance.now() - startedAt;
    for (; framesSent * frameMs <= playedMs; framesSent += 1) {
      const frame = pcm.subarray(framesSent * frameBytes, (framesSent + 1) * frameBytes);
      socket.send(frame.length > 0 ? frame : silence);
    }
    const silentMs = playedMs - (pcm.length / frameBytes) * frameMs;
    if (silentMs > answerWithinMs) {
      clearInterval(timer);
      socket.send(JSON.stringify({ type: "hang_up" }));
    }
  }, frameMs);
  return { isSilent: () => framesSent * frameBytes >= pcm.length, stop: () => clearInterval(timer) };
}

/** Resolves when the socket has closed; rejects when it never opened or broke. */
function closed(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("close", () => resolve());
    socket.once("error", reject);
  });
}

const [question = new URL("hello.wav", import.meta.url), answerPath = "answer.wav"] = process.argv.slice(2);
main(question, answerPath).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
