/**
 * Nova: a turn is the sum of what is final up to the answer to `Finalize`.
 * Wire: https://developers.deepgram.com/reference/speech-to-text/listen-streaming
 */
import type { VendorStageRequest } from "../provider.ts";
import type { Heard, RecognizerWire } from "../streaming_recognizer.ts";
import { listenUrl } from "./listen_url.ts";
import type { DeepgramOptions } from "./options.ts";

interface Results {
  is_final?: boolean;
  from_finalize?: boolean;
  start: number;
  duration: number;
  channel: { alternatives: { transcript: string }[] };
}

export function novaWire(
  { settings, options, access }: VendorStageRequest<DeepgramOptions>,
  model: string,
): RecognizerWire {
  return {
    provider: "deepgram",
    headers: { authorization: `Token ${access.secret}` },
    url: (sampleRateHz) =>
      listenUrl(access.baseUrl, "/v1/listen", [
        ["model", model],
        ["encoding", "linear16"],
        ["sample_rate", String(sampleRateHz)],
        ["channels", "1"],
        ["interim_results", "true"],
        ["punctuate", "true"],
        ["language", settings.language],
        ["smart_format", options.smart_format === undefined ? undefined : String(options.smart_format)],
        ...(options.keyterms ?? []).map((term): [string, string] => ["keyterm", term]),
      ]),
    read,
    finalize: '{"type":"Finalize"}',
    keepAlive: '{"type":"KeepAlive"}',
    goodbye: '{"type":"CloseStream"}',
  };
}

function read(text: string): Heard[] {
  const message = JSON.parse(text) as { type?: string };
  // `Metadata`, `SpeechStarted`, `UtteranceEnd`, and what is new to us.
  if (typeof message.type !== "string") throw new Error("Expected a message with a type");
  if (message.type !== "Results") return [];
  const { is_final, from_finalize, start, duration, channel } = message as unknown as Results;
  const words = channel.alternatives[0]?.transcript ?? "";
  if (!is_final) return words ? [{ is: "partial", text: words }] : [];
  const final: Heard = { is: "final", text: words, endMs: (start + duration) * 1000 };
  return from_finalize ? [final, { is: "finalized" }] : [final];
}
