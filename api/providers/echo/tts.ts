import type { StageRequest, TextToSpeech } from "../provider.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { EchoOptions } from "./options.ts";

/** Says the audio that it is given, sample for sample. Text without audio has no sound here. */
export function open({ options, waits }: StageRequest<EchoOptions>): TextToSpeech {
  return {
    async *speak(_text, context, signal) {
      if (!(await passFaults("tts", options, context.turnIndex, signal))) return;
      if (context.first && !(await waitFor(waits, options.delay_ms, signal))) return;
      if (context.audio) yield context.audio;
    },
    close() {},
  };
}
