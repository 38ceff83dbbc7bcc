import type { SpeechToText, StageRequest, SttResult } from "../provider.ts";
import { wordsOf } from "../reply_text.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { ScriptedSttOptions } from "./options.ts";

/** Speech after which a partial result grows by a word. */
const partialEveryMs = 300;

/** The n-th end of user speech yields the n-th transcript, the last one repeats. */
export function open({ settings, options, waits }: StageRequest<ScriptedSttOptions>): SpeechToText {
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
      if (!passed || !(await waitFor(waits, options.delay_ms, signal))) return { text: "", final: true, language };
      return { text: transcript(utterance.index), final: true, language };
    },
    close() {},
  };
  return stt;
}
