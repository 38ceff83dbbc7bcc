import type { SpeechToText, VendorStageRequest } from "../provider.ts";
import { StreamingRecognizer } from "../streaming_recognizer.ts";
import { fluxWire } from "./flux.ts";
import { novaWire } from "./nova.ts";
import { type DeepgramOptions, modelDefault } from "./options.ts";

/** Models of Flux have a wire of their own. */
export function open(request: VendorStageRequest<DeepgramOptions>): SpeechToText {
  const { settings, access, waits } = request;
  const model = settings.model ?? modelDefault;
  const wire = model.startsWith("flux-") ? fluxWire(request, model) : novaWire(request, model);
  return new StreamingRecognizer({ wire, access, waits, language: settings.language });
}
