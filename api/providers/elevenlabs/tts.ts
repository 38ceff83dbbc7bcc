/** Wire: https://elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-multi-stream-input */
import type { TextToSpeech, VendorStageRequest } from "../provider.ts";
import { ProviderError, vendorWords } from "../provider_error.ts";
import { type Spoken, StreamingVoice } from "../streaming_voice.ts";
import { type ElevenLabsOptions, modelDefault } from "./options.ts";

const sampleRateHz = 24_000;
/** The longest that the vendor keeps an idle socket. */
const inactivityTimeoutS = 180;

/** The field's documents and schemas disagree on the case of names: both are read. */
interface Message {
  audio?: string | null;
  isFinal?: boolean | null;
  is_final?: boolean | null;
  contextId?: string | null;
  context_id?: string | null;
  error?: unknown;
  message?: unknown;
}

export function open({ settings, options, access }: VendorStageRequest<ElevenLabsOptions>): TextToSpeech {
  const query = new URLSearchParams({
    model_id: settings.model ?? modelDefault,
    output_format: `pcm_${sampleRateHz}`,
    inactivity_timeout: String(inactivityTimeoutS),
  });
  const base = `${access.baseUrl ?? "https://api.elevenlabs.io"}/v1/text-to-speech`;
  const wire = {
    provider: "elevenlabs",
    url: `${base}/${encodeURIComponent(settings.voice ?? "")}/multi-stream-input?${query}`,
    headers: { "xi-api-key": access.secret },
    sampleRateHz,
    say: (context_id: string, text: string) =>
      [
        // A context begins with a space, and every text ends with one.
        { text: " ", context_id, ...(Object.keys(options).length > 0 && { voice_settings: options }) },
        { text: `${text.trim()} `, context_id, flush: true },
        // What was flushed is still spoken, and then told to be final.
        { context_id, close_context: true },
      ].map((message) => JSON.stringify(message)),
    cancel: (context_id: string) => JSON.stringify({ context_id, close_context: true }),
    read: (text: string) => read(text, access.secret),
  };
  return new StreamingVoice(wire, access);
}

function read(text: string, secret: string): Spoken[] {
  const message = JSON.parse(text) as Message;
  const context = message.contextId ?? message.context_id;
  if (message.error !== undefined && message.error !== null) {
    const words = vendorWords(`elevenlabs failed: ${message.error}: ${message.message ?? ""}`, secret);
    const error = new ProviderError("tts", words, { kind: kindOfCode(String(message.error)) });
    return [context ? { context, is: "failed", error } : { is: "failed", error }];
  }
  if (!context) throw new Error("Expected a message of a context");
  const spoken: Spoken[] = [];
  if (message.audio) spoken.push({ context, is: "audio", audio: message.audio });
  if (message.isFinal ?? message.is_final) spoken.push({ context, is: "done" });
  return spoken;
}

function kindOfCode(code: string) {
  if (code.includes("quota")) return "quota";
  if (code.includes("rate") || code.includes("limit") || code.includes("busy")) return "rate_limited";
  return code.includes("auth") || code.includes("api_key") ? "auth" : "unavailable";
}
