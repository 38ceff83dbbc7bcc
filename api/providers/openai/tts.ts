/**
 * Any endpoint that speaks OpenAI's speech API: a request a clause, played as it comes.
 * Wire: https://platform.openai.com/docs/api-reference/audio/createSpeech
 */
import type { TextToSpeech, VendorStageRequest } from "../provider.ts";
import { ProviderError } from "../provider_error.ts";
import { samplesOf, WavError } from "../wav.ts";
import { openClient, readable, wasAborted } from "./client.ts";
import { type OpenAiTtsOptions, ttsModelDefault } from "./options.ts";

const voiceDefault = "alloy";
/** Of `pcm`, which has no header. */
const sampleRateHz = 24_000;

export function open(request: VendorStageRequest<OpenAiTtsOptions>): TextToSpeech {
  return openSpeech(request, "pcm");
}

/** @param format what is asked for; an answer with a WAV header is believed in any case */
export function openSpeech(
  { settings, options, access }: VendorStageRequest<OpenAiTtsOptions>,
  format: "pcm" | "wav",
): TextToSpeech {
  const client = openClient(access, options.first_byte_timeout_ms);
  const model = settings.model ?? ttsModelDefault;
  const params = {
    model,
    voice: settings.voice ?? voiceDefault,
    response_format: format,
    ...(options.instructions !== undefined && { instructions: options.instructions }),
    ...(options.speed !== undefined && { speed: options.speed }),
  };
  return {
    async *speak(text, _context, signal) {
      if (signal.aborted) return;
      try {
        const { headers, body } = await client.audio.speech.create({ ...params, input: text }, { signal });
        if (!body || isText(headers.get("content-type"))) throw noSound(model);
        for await (const piece of samplesOf(body as unknown as AsyncIterable<Uint8Array>, sampleRateHz)) {
          if (signal.aborted) return;
          yield piece;
        }
      } catch (error) {
        if (wasAborted(error, signal)) return;
        throw error instanceof WavError ? noSound(model, error) : readable("tts", error, model);
      }
    },
    close() {},
  };
}

const isText = (contentType: string | null) => /^(text\/|application\/json)/.test(contentType ?? "");

function noSound(model: string, cause?: WavError): ProviderError {
  const why = cause ? `: ${cause.message}` : "";
  return new ProviderError("tts", `The endpoint of ${model} answered no sound that can be played${why}`, {
    kind: "protocol",
    cause,
  });
}
