/**
 * A server that speaks Deepgram's two streaming wires. It hears what is loud: Nova (`/v1/listen`) says how much
 * of it there was when it is asked to finalize, Flux (`/v2/listen`) when 240 ms of quiet have followed.
 * Wires: https://developers.deepgram.com/reference/speech-to-text
 */
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwinServer, targetOf } from "../twin_server.ts";

const secret = "dg-twin-secret";
const refusals: { [B in TwinBehaviour]?: number } = { fails: 503, rate_limited: 429 };
const quietMsAfterTurn = 240;
const loudFrom = 500;

export async function startTwin(): Promise<VendorTwin> {
  let behaviour: TwinBehaviour = "answers";
  let finalAfterMs = 0;
  const { url, close } = await startTwinServer(
    (request, response) => {
      const isKnown = request.headers.authorization === `Token ${secret}`;
      response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
      response.end(isKnown ? '{"projects":[]}' : '{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials."}');
    },
    {
      refusal(request) {
        const status = refusalOf(request) ?? refusals[behaviour];
        if (status === undefined) return undefined;
        return { status, body: JSON.stringify({ err_code: "REFUSED", err_msg: `No: ${status} for ${secret}` }) };
      },
      serve: (socket, request) => serve(socket, targetOf(request), behaviour, () => finalAfterMs),
    },
  );
  return {
    access: { secret, baseUrl: url },
    models: { stt: ["nova-3", "flux-general-en"] },
    play(stage, next) {
      if (stage !== "stt" || next === "calls_tool" || next === "alternates") return undefined;
      behaviour = next;
      return {};
    },
    pace(_stage, { delayMs }) {
      finalAfterMs = delayMs;
    },
    close,
  };
}

function refusalOf(request: IncomingMessage): number | undefined {
  const { pathname, searchParams: query } = targetOf(request);
  if (request.headers.authorization !== `Token ${secret}`) return 401;
  const isFlux = query.get("model")?.startsWith("flux-");
  if (pathname !== (isFlux ? "/v2/listen" : "/v1/listen")) return 404;
  return query.get("encoding") === "linear16" && Number(query.get("sample_rate")) > 0 ? undefined : 400;
}

function serve(
  socket: WebSocket,
  { pathname, searchParams }: URL,
  behaviour: TwinBehaviour,
  finalAfterMs: () => number,
): void {
  const rateHz = Number(searchParams.get("sample_rate"));
  const wire = pathname === "/v2/listen" ? flux(socket) : nova(socket);
  wire.begins?.();
  socket.on("message", (data: Buffer, isBinary) => {
    if (behaviour === "silent") return;
    if (!isBinary) {
      const { type } = JSON.parse(data.toString()) as { type: string };
      if (type === "CloseStream") socket.close(1000);
      else if (finalAfterMs() > 0) setTimeout(() => wire.asked(type), finalAfterMs());
      else wire.asked(type);
      return;
    }
    if (behaviour === "garbage") return socket.send('{"type":');
    wire.hears((data.length * 500) / rateHz, isLoud(data));
    if (behaviour === "drops") socket.terminate();
  });
}

function isLoud(data: Buffer): boolean {
  for (let at = 0; at + 1 < data.length; at += 2) if (Math.abs(data.readInt16LE(at)) > loudFrom) return true;
  return false;
}

interface Wire {
  begins?(): void;
  hears(ms: number, loud: boolean): void;
  asked(type: string): void;
}

function nova(socket: WebSocket): Wire {
  let atMs = 0;
  let fromMs = 0;
  let loudMs = 0;
  const tell = (is_final: boolean, from_finalize = false) => {
    const transcript = loudMs > 0 ? `I heard ${Math.round(loudMs)} ms.` : "";
    const channel = { alternatives: [{ transcript, confidence: 0.9, words: [] }] };
    const span = { start: fromMs / 1000, duration: (atMs - fromMs) / 1000 };
    const metadata = { request_id: "r", model_uuid: "m", model_info: { name: "nova-3", version: "1", arch: "nova-3" } };
    const results = { type: "Results", channel_index: [0, 1], ...span, is_final, speech_final: is_final };
    socket.send(JSON.stringify({ ...results, channel, metadata, from_finalize }));
  };
  return {
    hears(ms, loud) {
      atMs += ms;
      if (!loud) return;
      loudMs += ms;
      tell(false);
    },
    asked(type) {
      if (type !== "Finalize") return;
      tell(true, true);
      fromMs = atMs;
      loudMs = 0;
    },
  };
}

function flux(socket: WebSocket): Wire {
  let sequence_id = 0;
  let turn_index = 0;
  let atMs = 0;
  let fromMs = 0;
  let loudMs = 0;
  let quietMs = 0;
  const send = (message: object) => {
    socket.send(JSON.stringify({ ...message, request_id: "r", sequence_id }));
    sequence_id += 1;
  };
  const tell = (event: string) =>
    send({
      type: "TurnInfo",
      event,
      turn_index,
      audio_window_start: fromMs / 1000,
      audio_window_end: atMs / 1000,
      transcript: `I heard ${Math.round(loudMs)} ms.`,
      words: [],
      end_of_turn_confidence: event === "EndOfTurn" ? 0.9 : 0.1,
    });
  return {
    begins: () => send({ type: "Connected" }),
    hears(ms, loud) {
      atMs += ms;
      quietMs = loud ? 0 : quietMs + ms;
      if (loud) {
        const isFirst = loudMs === 0;
        loudMs += ms;
        tell(isFirst ? "StartOfTurn" : "Update");
      } else if (loudMs > 0 && quietMs >= quietMsAfterTurn) {
        tell("EndOfTurn");
        turn_index += 1;
        fromMs = atMs;
        loudMs = 0;
      }
    },
    asked(type) {
      // The vendor enables it for some customers alone.
      if (type === "ForceEndTurn") send({ type: "Error", code: "UNPARSABLE_CLIENT_MESSAGE", description: type });
    },
  };
}
