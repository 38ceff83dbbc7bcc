import type { OpenAiSttOptions } from "../openai/options.ts";
import { open as openTranscription } from "../openai/stt.ts";
import type { SpeechToText, VendorStageRequest } from "../provider.ts";

/** Servers with one model do not look at its name, but most want one. */
const modelDefault = "whisper-1";

export function open(request: VendorStageRequest<OpenAiSttOptions>): SpeechToText {
  const { settings, access } = request;
  const model = settings.model ?? access.defaults?.model ?? modelDefault;
  return openTranscription({ ...request, settings: { ...settings, model } });
}
