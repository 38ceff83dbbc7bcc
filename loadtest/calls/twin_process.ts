/**
 * The vendors of `calls --providers twins`, in a process of their own, so that their CPU is not the
 * gateway's: recognition, a model and a voice that take their time, and a tool behind HTTP. Says in one line
 * of JSON where they are, and ends with its standard input.
 */
import { setTimeout as delay } from "node:timers/promises";
import { startTwin as startCartesia } from "#providers/cartesia/twin.ts";
import { startTwin as startDeepgram } from "#providers/deepgram/twin.ts";
import { startTwin as startOpenAi } from "#providers/openai/twin.ts";
import { startTwinServer } from "#providers/twin_server.ts";
import { publishedDelaysMs, requestsPerFault, toolMs } from "./twin_agent.ts";

const [deepgram, openai, cartesia] = await Promise.all([startDeepgram(), startOpenAi(), startCartesia()]);
deepgram.pace?.("stt", { delayMs: publishedDelaysMs.stt });
openai.pace?.("llm", { delayMs: publishedDelaysMs.llm, failsEach: requestsPerFault });
openai.play("llm", "alternates");
cartesia.pace?.("tts", { delayMs: publishedDelaysMs.tts });
const tool = await startTwinServer(async (_request, response) => {
  await delay(toolMs);
  response.writeHead(200, { "content-type": "application/json" });
  response.end('{"breakfast":"from seven to ten"}');
});
const vendors = { deepgram: deepgram.access, openai: openai.access, cartesia: cartesia.access };
process.stdout.write(`${JSON.stringify({ vendors, toolUrl: `${tool.url}/breakfast` })}\n`);
process.stdin.resume().once("end", () => process.exit(0));
