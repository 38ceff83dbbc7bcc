/**
 * A server that speaks ElevenLabs' speech socket of many contexts: each flushed text is a tone as long as it,
 * in two pieces; a closed context is final once what was flushed is spoken.
 * Wire: https://elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-multi-stream-input
 */
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwinServer, targetOf, toneOf } from "../twin_server.ts";

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
  const { url, close } = await startTwinServer(
    (request, response) => {
      response.writeHead(request.headers["xi-api-key"] === secret ? 200 : 401, { "content-type": "application/json" });
      response.end("[]");
    },
    {
      refusal(request) {
        const status = refusalOf(request) ?? refusals[behaviour];
        if (status === undefined) return undefined;
        const detail = { status: "refused", message: `No: ${status} for ${secret}` };
        return { status, body: JSON.stringify({ detail }) };
      },
      serve(socket, request) {
        const rateHz = Number(targetOf(request).searchParams.get("output_format")?.replace("pcm_", ""));
        serve(socket, rateHz, behaviour);
      },
    },
  );
  return {
    access: { secret, baseUrl: url },
    play(stage, next) {
      if (stage !== "tts" || next === "calls_tool") return undefined;
      behaviour = next;
      return { voice: "a-voice" };
    },
    close,
  };
}

function refusalOf(request: IncomingMessage): number | undefined {
  const { pathname, searchParams: query } = targetOf(request);
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
