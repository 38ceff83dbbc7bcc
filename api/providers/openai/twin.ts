/**
 * A server that speaks OpenAI's API: chat completions as streamed server-sent events (it repeats the last
 * message of the user, in two pieces, and counts its words as tokens), transcriptions (it says how long the
 * file is) and speech (a tone as long as the text).
 * Wire: https://platform.openai.com/docs/api-reference
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { TwinBehaviour, TwinPace, VendorTwin } from "#contracts/vendor_twin.ts";
import { breakOff, startTwinServer, toneOf } from "../twin_server.ts";

interface ChatRequest {
  messages: { role: string; content: string | null }[];
  tools?: { function: { name: string } }[];
}

interface Asked {
  body: Buffer;
  request: IncomingMessage;
  response: ServerResponse;
}

type Stage = "stt" | "llm" | "tts";

const secret = "sk-twin";
const stageOf: Readonly<Record<string, Stage>> = {
  "/v1/chat/completions": "llm",
  "/v1/audio/transcriptions": "stt",
  "/v1/audio/speech": "tts",
};
const handlers: { [S in Stage]: (behaviour: TwinBehaviour, asked: Asked) => void } = {
  llm: chat,
  stt: (behaviour, asked) => void transcribe(behaviour, asked),
  tts: speak,
};

export async function startTwin(): Promise<VendorTwin> {
  const behaviours: { [S in Stage]: TwinBehaviour } = { stt: "answers", llm: "answers", tts: "answers" };
  const paces: { [S in Stage]?: TwinPace } = {};
  let requests = 0;
  const { url, close } = await startTwinServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.headers.authorization !== `Bearer ${secret}`) return refuse(response, 401, "invalid_api_key");
    if (request.url === "/v1/models") return void response.end('{"object":"list","data":[]}');
    const stage = stageOf[request.url ?? ""];
    if (request.method !== "POST" || !stage) return refuse(response, 404, "not_found");
    const { delayMs = 0, failsEach } = paces[stage] ?? {};
    requests += 1;
    const behaviour = failsEach && requests % failsEach === 0 ? "fails" : behaviours[stage];
    if (delayMs > 0) await delay(delayMs);
    answer(stage, behaviour, { body: Buffer.concat(chunks), request, response });
  });
  return {
    access: { secret, baseUrl: `${url}/v1` },
    play(stage, next) {
      if (stage !== "llm" && (next === "calls_tool" || next === "alternates")) return undefined;
      behaviours[stage] = next;
      return { model: "twin-1" };
    },
    pace(stage, pace) {
      paces[stage] = pace;
    },
    close,
  };
}

function answer(stage: Stage, behaviour: TwinBehaviour, asked: Asked): void {
  const { response } = asked;
  if (behaviour === "silent") return;
  if (behaviour === "fails") {
    refuse(response, 500, "server_error");
  } else if (behaviour === "rate_limited") {
    response.setHeader("retry-after", "1");
    refuse(response, 429, "rate_limit_exceeded");
  } else handlers[stage](behaviour, asked);
}

function chat(behaviour: TwinBehaviour, { body, response }: Asked): void {
  const request = JSON.parse(body.toString()) as ChatRequest;
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (behaviour === "garbage") response.end('data: {"choices":[{"index":0,"delta":{"content":"Go\n\n');
  else if (behaviour === "calls_tool" || (behaviour === "alternates" && isToolsTurn(request)))
    callTool(request, response);
  else sayBack(request, response, behaviour === "drops");
}

/** Every second turn, as long as its tool has not answered. */
function isToolsTurn({ messages }: ChatRequest): boolean {
  const turns = messages.filter(({ role }) => role === "user").length;
  return turns % 2 === 0 && messages.at(-1)?.role === "user";
}

async function transcribe(behaviour: TwinBehaviour, { body, request, response }: Asked): Promise<void> {
  const headers = { "content-type": request.headers["content-type"] ?? "" };
  const form = await new Response(body, { headers }).formData();
  const file = form.get("file");
  if (!(file instanceof File) || !form.get("model")) return refuse(response, 400, "invalid_request_error");
  const wav = Buffer.from(await file.arrayBuffer());
  if (wav.toString("latin1", 0, 4) !== "RIFF") return refuse(response, 400, "unsupported_file");
  const durationMs = Math.round((wav.readUInt32LE(40) * 1000) / wav.readUInt32LE(28));
  const text = JSON.stringify({ text: `I heard ${durationMs} ms in ${form.get("language")}.` });
  response.writeHead(200, { "content-type": "application/json" });
  if (behaviour === "garbage") response.end('{"segments":[]}');
  else if (behaviour === "drops") breakOff(response, text.slice(0, 10));
  else response.end(text);
}

function speak(behaviour: TwinBehaviour, { body, response }: Asked): void {
  const { input, response_format } = JSON.parse(body.toString()) as { input: string; response_format: string };
  if (behaviour === "garbage")
    return void response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hello</h1>");
  const isWav = response_format === "wav";
  const rateHz = isWav ? 16_000 : 24_000;
  const sound = toneOf(input.length * 50, rateHz);
  response.writeHead(200, { "content-type": isWav ? "audio/wav" : "audio/pcm" });
  if (isWav) response.write(streamedWavHeader(rateHz));
  // An odd cut: samples are two bytes.
  const half = Math.floor(sound.length / 4) * 2 + 1;
  if (behaviour === "drops") {
    breakOff(response, sound.subarray(0, half));
    return;
  }
  response.write(sound.subarray(0, half));
  response.end(sound.subarray(half));
}

/** The sizes are not known when it is written. */
function streamedWavHeader(rateHz: number): Buffer {
  const header = Buffer.alloc(44, 0xff);
  header.write("RIFF", 0, "latin1");
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rateHz, 24);
  header.writeUInt32LE(rateHz * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  return header;
}

function sayBack({ messages }: ChatRequest, response: ServerResponse, drops: boolean): void {
  const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const beginning = eventOf({ role: "assistant", content: "You said: " });
  if (drops) {
    breakOff(response, beginning);
    return;
  }
  response.write(beginning);
  response.write(eventOf({ content: asked }));
  finish(response, "stop", asked.split(/\s+/).length);
}

/** Arguments come in pieces, as the vendor sends them. */
function callTool({ tools = [] }: ChatRequest, response: ServerResponse): void {
  const name = tools[0]?.function.name ?? "";
  const begin = { index: 0, id: "call_1", type: "function", function: { name, arguments: "" } };
  response.write(eventOf({ tool_calls: [begin] }));
  for (const piece of ['{"a":', "1}"]) {
    response.write(eventOf({ tool_calls: [{ index: 0, function: { arguments: piece } }] }));
  }
  finish(response, "tool_calls", 1);
}

function eventOf(delta: object): string {
  return `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta }] })}\n\n`;
}

function finish(response: ServerResponse, reason: string, tokens: number): void {
  const last = { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
  const usage = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens };
  response.write(`data: ${JSON.stringify(last)}\n\n`);
  response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message: `${code} for ${secret}`, type: code, code } }));
}
