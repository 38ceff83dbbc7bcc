import type { SpeechToText, StageRequest } from "../provider.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { EchoOptions } from "./options.ts";

/** Understands no words: its text says how long the speech was, so that the turn is not taken for an empty one. */
export function open({ options, waits }: StageRequest<EchoOptions>): SpeechToText {
  return {
    write() {},
    async finish(utterance, signal) {
      const passed = await passFaults("stt", options, utterance.index, signal);
      if (!passed || !(await waitFor(waits, options.delay_ms, signal))) return { text: "", final: true };
      const seconds = utterance.samples.length / utterance.sampleRateHz;
      return { text: `(${seconds.toFixed(1)} s of speech)`, final: true };
    },
    close() {},
  };
}
