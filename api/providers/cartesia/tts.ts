/** Wire: https://docs.cartesia.ai/api-reference/tts/websocket */
import type { TextToSpeech, VendorStageRequest } from "../provider.ts";
import { kindOfStatus, ProviderError, vendorWords } from "../provider_error.ts";
import { type Spoken, StreamingVoice } from "../streaming_voice.ts";
import { type CartesiaOptions, modelDefault } from "./options.ts";

interface Message {
  type?: unknown;
  context_id?: string;
  data: string;
  title: string;
  message: string;
  status_code: number;
}

export function open({ settings, options, access }: VendorStageRequest<CartesiaOptions>): TextToSpeech {
  const common = {
    model_id: settings.model ?? modelDefault,
    voice: { id: settings.voice },
    output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: options.sample_rate },
    // ISO 639-1, of a tag like `en-GB`.
    language: settings.language.split("-")[0],
  };
  const wire = {
    provider: "cartesia",
    url: `${access.baseUrl ?? "https://api.cartesia.ai"}/tts/websocket`,
    headers: { authorization: `Bearer ${access.secret}`, "cartesia-version": "2026-08-14" },
    sampleRateHz: options.sample_rate,
    say: (context_id: string, transcript: string) => [JSON.stringify({ ...common, context_id, transcript })],
    cancel: (context_id: string) => JSON.stringify({ context_id, cancel: true }),
    read: (text: string) => read(text, access.secret),
  };
  return new StreamingVoice(wire, access);
}

function read(text: string, secret: string): Spoken[] {
  const { type, context_id: context = "", ...message } = JSON.parse(text) as Message;
  if (type === "chunk") return [{ context, is: "audio", audio: message.data }];
  if (type === "done") return [{ context, is: "done" }];
  if (type === "error") {
    const words = `cartesia answered ${message.status_code}: ${message.title}: ${message.message}`;
    const error = new ProviderError("tts", vendorWords(words, secret), { kind: kindOfStatus(message.status_code) });
    return [context ? { context, is: "failed", error } : { is: "failed", error }];
  }
  // `timestamps`, `flush_done`, and what is new to us.
  if (typeof type !== "string") throw new Error("Expected a message with a type");
  return [];
}
