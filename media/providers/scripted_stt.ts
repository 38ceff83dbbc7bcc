/** `scripted` speech to text: the n-th end of user speech yields the n-th transcript, the last one repeats. */
import { completeOptions, ScriptedSttOptions } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { wordsOf } from "#outbound/models/reply_text.ts";
import { passFaults, realWaits, type WaitDeps, waitFor } from "#outbound/models/waiting.ts";
import type { SpeechToText, SttResult } from "./provider.ts";

/** Speech after which a partial result grows by a word. */
const partialEveryMs = 300;

/** @throws Error when the options do not fit `ScriptedSttOptions` */
export function createScriptedStt(settings: ModelSettings, deps: WaitDeps = realWaits): SpeechToText {
  const options = completeOptions(ScriptedSttOptions, settings.options);
  const language = settings.language;
  let nextIndex = 0;
  let heardMs = 0;
  let wordsShown = 0;

  const transcript = (index: number) => options.transcripts[Math.min(index, options.transcripts.length - 1)] ?? "";

  const stt: SpeechToText = {
    onPartial: undefined,
    write(chunk) {
      if (!options.partials) return;
      heardMs += (chunk.samples.length / chunk.sampleRateHz) * 1000;
      const words = wordsOf(transcript(nextIndex));
      const due = Math.min(Math.floor(heardMs / partialEveryMs), words.length - 1);
      if (due <= wordsShown) return;
      wordsShown = due;
      stt.onPartial?.({ text: words.slice(0, due).join("").trimEnd(), final: false, language });
    },
    async finish(utterance, signal): Promise<SttResult> {
      nextIndex = utterance.index + 1;
      heardMs = 0;
      wordsShown = 0;
      const passed = await passFaults("stt", options, utterance.index, signal);
      if (!passed || !(await waitFor(deps, options.delay_ms, signal))) return { text: "", final: true, language };
      return { text: transcript(utterance.index), final: true, language };
    },
    close() {},
  };
  return stt;
}
