/**
 * A server that speaks ElevenLabs' speech socket of many contexts: each flushed text is a tone as long as it,
 * in two pieces; a closed context is final once what was flushed is spoken.
 * Wire: https://elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-multi-stream-input
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";

interface ClientMessage {
  text?: string;
  context_id?: string;
  flush?: boolean;
  close_context?: boolean;
}

const secret = "xi-twin-secret";
const refusals: { [B in TwinBehaviour]?: number } = { fails: 503, rate_limited: 429 };
const path = /^\/v1\/text-to-speech\/[^/]+\/multi-stream-input$/;
const msPerCharacter = 50;
/** The vendor opens no more side by side. */
const contextsMax = 5;

export async function startTwin(): Promise<VendorTwin> {
  let behaviour: TwinBehaviour = "answers";
  const server = createServer((request, response) => {
    response.writeHead(request.headers["xi-api-key"] === secret ? 200 : 401, { "content-type": "application/json" });
    response.end("[]");
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    // Who is refused may be gone before it has read why.
    socket.on("error", () => {});
    const status = refusalOf(request) ?? refusals[behaviour];
    if (status !== undefined) {
      const body = JSON.stringify({ detail: { status: "refused", message: `No: ${status} for ${secret}` } });
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    const rateHz = Number(urlOf(request).searchParams.get("output_format")?.replace("pcm_", ""));
    sockets.handleUpgrade(request, socket, head, (opened) => serve(opened, rateHz, behaviour));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    access: { secret, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    play(stage, next) {
      if (stage !== "tts" || next === "calls_tool") return undefined;
      behaviour = next;
      return { voice: "a-voice" };
    },
    async close() {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const urlOf = (request: IncomingMessage) => new URL(request.url ?? "", "http://twin");

function refusalOf(request: IncomingMessage): number | undefined {
  const { pathname, searchParams: query } = urlOf(request);
  if (request.headers["xi-api-key"] !== secret) return 401;
  if (!path.test(pathname)) return 404;
  const isFit = query.get("model_id") && /^pcm_\d+$/.test(query.get("output_format") ?? "");
  return isFit && Number(query.get("inactivity_timeout") ?? 20) <= 180 ? undefined : 400;
}

function serve(socket: WebSocket, rateHz: number, behaviour: TwinBehaviour): void {
  const texts = new Map<string, string>();
  const send = (message: object) => socket.send(JSON.stringify(message));
  socket.on("message", (data: Buffer) => {
    if (behaviour === "silent") return;
    if (behaviour === "garbage") {
      socket.send('{"audio":');
      return;
    }
    const { text, context_id: contextId, flush, close_context } = JSON.parse(data.toString()) as ClientMessage;
    if (contextId === undefined) {
      send({ error: "missing_context", message: "Expected context_id" });
      return;
    }
    if (text !== undefined) texts.set(contextId, (texts.get(contextId) ?? "") + text);
    if (texts.size > contextsMax) send({ error: "max_active_contexts_limit", message: "Too many", contextId });
    if (flush) {
      const sound = toneOf((texts.get(contextId) ?? "").trim().length * msPerCharacter, rateHz);
      texts.set(contextId, "");
      const half = Math.floor(sound.length / 4) * 2;
      const audio = (part: Buffer) => send({ audio: part.toString("base64"), contextId, alignment: null });
      audio(sound.subarray(0, half));
      // What was written has to leave before the connection breaks.
      if (behaviour === "drops") setImmediate(() => socket.terminate());
      else audio(sound.subarray(half));
    }
    if (close_context && behaviour !== "drops" && texts.delete(contextId)) send({ isFinal: true, contextId });
  });
}

function toneOf(durationMs: number, rateHz: number): Buffer {
  const sound = Buffer.alloc(Math.round((durationMs * rateHz) / 1000) * 2);
  for (let at = 0; at < sound.length; at += 2) {
    sound.writeInt16LE(Math.round(4000 * Math.sin((Math.PI * 440 * at) / rateHz)), at);
  }
  return sound;
}
