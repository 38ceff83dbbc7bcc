import type { OpenAiTtsOptions } from "../openai/options.ts";
import { openSpeech } from "../openai/tts.ts";
import type { TextToSpeech, VendorStageRequest } from "../provider.ts";

const modelDefault = "tts-1";
const voiceDefault = "alloy";

/** WAV is asked for, because servers differ in the rate of bare samples. */
export function open(request: VendorStageRequest<OpenAiTtsOptions>): TextToSpeech {
  const { settings, access } = request;
  const { defaults = {} } = access;
  const model = settings.model ?? defaults.model ?? modelDefault;
  const voice = settings.voice ?? defaults.voice ?? voiceDefault;
  return openSpeech({ ...request, settings: { ...settings, model, voice } }, "wav");
}
