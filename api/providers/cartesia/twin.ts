/**
 * A server that speaks Cartesia's speech socket: each context is a tone as long as its text, in two pieces.
 * Wire: https://docs.cartesia.ai/api-reference/tts/websocket
 */
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwinServer, targetOf, toneOf } from "../twin_server.ts";

interface Generation {
  context_id: string;
  cancel?: true;
  model_id: string;
  transcript: string;
  voice: { id: string } | string;
  output_format: { container: string; encoding: string; sample_rate: number };
  continue?: boolean;
}

const secret = "sk_car_twin";
const version = "2026-08-14";
const msPerCharacter = 50;
const refusals: { [B in TwinBehaviour]?: readonly [status: number, title: string] } = {
  fails: [503, "Service unavailable"],
  rate_limited: [429, "Concurrency limit exceeded"],
};

export async function startTwin(): Promise<VendorTwin> {
  let behaviour: TwinBehaviour = "answers";
  let firstSoundAfterMs = 0;
  const isKnown = ({ headers }: IncomingMessage) =>
    headers.authorization === `Bearer ${secret}` && headers["cartesia-version"] === version;
  const { url, close } = await startTwinServer(
    (request, response) => {
      response.writeHead(isKnown(request) ? 200 : 401, { "content-type": "application/json" });
      response.end('{"data":[],"has_more":false}');
    },
    {
      refusal(request) {
        if (targetOf(request).pathname !== "/tts/websocket") return { status: 404, body: secret };
        return isKnown(request) ? undefined : { status: 401, body: secret };
      },
      serve: (socket) =>
        serve(
          socket,
          () => behaviour,
          () => firstSoundAfterMs,
        ),
    },
  );
  return {
    access: { secret, baseUrl: url },
    play(stage, next) {
      if (stage !== "tts" || next === "calls_tool" || next === "alternates") return undefined;
      behaviour = next;
      return { voice: "a-voice" };
    },
    pace(_stage, { delayMs }) {
      firstSoundAfterMs = delayMs;
    },
    close,
  };
}

function serve(socket: WebSocket, behaviour: () => TwinBehaviour, afterMs: () => number): void {
  const cancelled = new Set<string>();
  socket.on("message", (data: Buffer) => {
    const request = JSON.parse(data.toString()) as Generation;
    if (request.cancel) cancelled.add(request.context_id);
    else if (afterMs() === 0) answer(socket, request, behaviour(), cancelled);
    else
      setTimeout(() => {
        if (!cancelled.has(request.context_id)) answer(socket, request, behaviour(), cancelled);
      }, afterMs());
  });
}

function answer(socket: WebSocket, request: Generation, behaviour: TwinBehaviour, cancelled: Set<string>): void {
  const { context_id, transcript, output_format: format } = request;
  const send = (message: object) =>
    socket.send(JSON.stringify({ context_id, done: false, status_code: 206, ...message }));
  if (behaviour === "silent") return;
  if (behaviour === "garbage") {
    socket.send("<html>");
    return;
  }
  const isFit = request.model_id && request.voice && format.container === "raw" && format.encoding === "pcm_s16le";
  const refusal = refusals[behaviour] ?? (isFit ? undefined : ([400, "Invalid request"] as const));
  if (refusal) {
    const [status_code, title] = refusal;
    send({ type: "error", done: true, status_code, title, message: `${title} for ${secret}` });
    return;
  }
  const sound = toneOf(transcript.length * msPerCharacter, format.sample_rate);
  const half = Math.floor(sound.length / 4) * 2;
  const chunk = (part: Buffer) => send({ type: "chunk", data: part.toString("base64"), step_time: 1 });
  chunk(sound.subarray(0, half));
  if (behaviour === "drops") {
    // What was written has to leave before the connection breaks.
    setImmediate(() => socket.terminate());
    return;
  }
  setImmediate(() => {
    if (cancelled.has(context_id)) return;
    chunk(sound.subarray(half));
    send({ type: "done", done: true, status_code: 200 });
  });
}
