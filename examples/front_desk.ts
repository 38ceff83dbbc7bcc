/**
 * Types sentences to the front desk, prints the conversation and saves its speech.
 *
 *     npm run example:frontdesk -- ["a sentence" …]
 *
 * The speech goes to front_desk.wav. No microphone is needed: typed text is a full turn of the caller.
 */
import { WebSocket } from "ws";
import type { SentMessage } from "#contracts/voice_protocol.ts";
import { readBootstrap } from "./config.ts";
import { reserveCall } from "./reservation.ts";
import { writeWav } from "./wav_file.ts";

const speechPath = "front_desk.wav";
const sampleRateHz = 16_000;
const usualQuestions = [
  "When is breakfast?",
  "I would like to book a room",
  "next Friday",
  "two",
  "for two guests",
  "Yes, please",
  "My name is Ada Lovelace",
];

async function main(sentences: string[]): Promise<void> {
  const bootstrap = await readBootstrap();
  const reservation = await reserveCall(bootstrap, bootstrap.voice_agent_id, {
    output_audio_format: { encoding: "pcm_s16le", sample_rate: sampleRateHz },
    // A file can take speech as fast as it comes; a loudspeaker would keep the default of 400 ms.
    client_buffer_ms: 30_000,
  });
  const socket = new WebSocket(reservation.websocket_url, "voice.v1", { perMessageDeflate: false });
  const send = (message: object) => socket.send(JSON.stringify(message));
  const speech: Buffer[] = [];
  const waiting = [...sentences];

  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      speech.push(data);
      return;
    }
    const event = JSON.parse(data.toString()) as SentMessage;
    switch (event.type) {
      case "call_started":
        console.log(`Call ${event.call_id}`);
        send({ type: "start", client: { name: "front_desk example" } });
        break;
      case "transcript":
        if (event.final) console.log(`${event.role === "user" ? "You:       " : "Front desk:"} ${event.text}`);
        break;
      case "mark":
        send({ type: "mark", name: event.name });
        break;
      case "agent_speech_done": {
        // One sentence after each answer; the first answers the welcome message.
        const sentence = waiting.shift();
        send(sentence === undefined ? { type: "hang_up" } : { type: "user_message", text: sentence });
        break;
      }
      case "warning":
      case "error":
        console.log(`${event.type}: ${event.message}`);
        break;
      case "call_ended":
        console.log(`Call ended: ${event.reason}`);
        break;
    }
  });

  await new Promise<void>((resolve, reject) => {
    socket.once("close", () => resolve());
    socket.once("error", reject);
  });
  const pcm = Buffer.concat(speech);
  await writeWav(speechPath, { sampleRateHz, pcm });
  console.log(`${(pcm.length / 2 / sampleRateHz).toFixed(1)} s of speech saved in ${speechPath}`);
}

const sentences = process.argv.slice(2);
main(sentences.length > 0 ? sentences : usualQuestions).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
