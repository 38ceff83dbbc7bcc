/**
 * Flux: says itself when a turn begins and ends; the transcript of a turn grows until then.
 * Wire: https://developers.deepgram.com/reference/speech-to-text/listen-flux
 */
import type { VendorStageRequest } from "../provider.ts";
import { ProviderError, vendorWords } from "../provider_error.ts";
import type { Heard, RecognizerWire } from "../streaming_recognizer.ts";
import { listenUrl } from "./listen_url.ts";
import type { DeepgramOptions } from "./options.ts";

interface TurnInfo {
  /** `Update`, `StartOfTurn`, `EagerEndOfTurn`, `TurnResumed`, `EndOfTurn`, and what is new to us. */
  event: string;
  transcript: string;
  audio_window_end: number;
}

export function fluxWire(
  { settings, options, access }: VendorStageRequest<DeepgramOptions>,
  model: string,
): RecognizerWire {
  const isMultilingual = model.endsWith("-multi");
  return {
    provider: "deepgram",
    headers: { authorization: `Token ${access.secret}` },
    url: (sampleRateHz) =>
      listenUrl(access.baseUrl, "/v2/listen", [
        ["model", model],
        ["encoding", "linear16"],
        ["sample_rate", String(sampleRateHz)],
        ["eot_threshold", options.eot_threshold === undefined ? undefined : String(options.eot_threshold)],
        ["eot_timeout_ms", options.eot_timeout_ms === undefined ? undefined : String(options.eot_timeout_ms)],
        ["language_hint", isMultilingual ? settings.language.split("-")[0] : undefined],
        ...(options.keyterms ?? []).map((term): [string, string] => ["keyterm", term]),
      ]),
    read: (text) => read(text, access.secret),
    goodbye: '{"type":"CloseStream"}',
  };
}

function read(text: string, secret: string): Heard[] {
  const message = JSON.parse(text) as { type?: string; code?: unknown; description?: unknown };
  if (typeof message.type !== "string") throw new Error("Expected a message with a type");
  if (message.type === "Error") {
    const words = vendorWords(`deepgram failed: ${message.code}: ${message.description}`, secret);
    throw new ProviderError("stt", words, { kind: "unavailable" });
  }
  if (message.type !== "TurnInfo") return [];
  const { event, transcript, audio_window_end } = message as unknown as TurnInfo;
  if (event !== "EndOfTurn") return transcript ? [{ is: "partial", text: transcript }] : [];
  return [{ is: "final", text: transcript, endMs: audio_window_end * 1000 }, { is: "turn_end" }];
}
