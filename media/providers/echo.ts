/** `echo` speech to text and text to speech: with the model `echo`, the caller's last utterance comes back as it was. */
import { completeOptions, EchoOptions } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { passFaults, realWaits, type WaitDeps, waitFor } from "#outbound/models/waiting.ts";
import type { SpeechToText, TextToSpeech } from "./provider.ts";

/** Understands no words: its text says how long the speech was, so that the turn is not taken for an empty one. */
export function createEchoStt(settings: ModelSettings, deps: WaitDeps = realWaits): SpeechToText {
  const options = completeOptions(EchoOptions, settings.options);
  return {
    write() {},
    async finish(utterance, signal) {
      const passed = await passFaults("stt", options, utterance.index, signal);
      if (!passed || !(await waitFor(deps, options.delay_ms, signal))) return { text: "", final: true };
      const seconds = utterance.samples.length / utterance.sampleRateHz;
      return { text: `(${seconds.toFixed(1)} s of speech)`, final: true };
    },
    close() {},
  };
}

/** Says the audio that it is given, sample for sample. Text without audio has no sound here. */
export function createEchoTts(settings: ModelSettings, deps: WaitDeps = realWaits): TextToSpeech {
  const options = completeOptions(EchoOptions, settings.options);
  return {
    async *speak(_text, context, signal) {
      if (!(await passFaults("tts", options, context.turnIndex, signal))) return;
      if (context.first && !(await waitFor(deps, options.delay_ms, signal))) return;
      if (context.audio) yield context.audio;
    },
    close() {},
  };
}
