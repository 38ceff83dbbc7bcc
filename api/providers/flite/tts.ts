/** `flite`: real speech, embedded. English; voices `slt` (the default), `kal16`, `rms`, `awb`; 16 kHz. */
import { clauseCharsMax, clausesOf } from "../clauses.ts";
import type { StageRequest, TextToSpeech } from "../provider.ts";
import { passFaults } from "../waiting.ts";
import { FliteQueue } from "./flite_queue.ts";
import { type FliteOptions, fliteVoices } from "./options.ts";
import { spokenText } from "./spoken_text.ts";

const pieceMs = 100;
/** What stays of the silence that a clause begins with: an answer begins at once, a later clause after a breath. */
const firstSilenceMs = 30;
const laterSilenceMs = 100;

/** The one of this thread. */
const threadQueue = new FliteQueue();

/** Speech by the synthesizer behind `queue`. */
export function open({ settings, options }: StageRequest<FliteOptions>, queue: FliteQueue = threadQueue): TextToSpeech {
  const voice = settings.voice ?? fliteVoices[0];
  return {
    async *speak(text, context, signal) {
      if (!(await passFaults("tts", options, context.turnIndex, signal))) return;
      let first = context.first;
      for (const clause of text.length > clauseCharsMax ? clausesOf(text) : [text]) {
        const spoken = spokenText(clause);
        if (!spoken) continue;
        const speech = await queue.speak({ voice, text: spoken }, signal);
        if (!speech) return;
        const silenceMs = first ? firstSilenceMs : laterSilenceMs;
        const begin = Math.max(0, speech.soundAt - Math.round((speech.sampleRateHz * silenceMs) / 1000));
        first = false;
        const pieceSamples = (speech.sampleRateHz * pieceMs) / 1000;
        for (let at = begin; at < speech.samples.length; at += pieceSamples) {
          if (signal.aborted) return;
          yield { samples: speech.samples.slice(at, at + pieceSamples), sampleRateHz: speech.sampleRateHz };
        }
      }
    },
    close() {},
  };
}

/** Loads the synthesizer of this thread ahead of the first call. */
export function warmUp(): Promise<void> {
  return threadQueue.start();
}

/** Stops the synthesizer of this thread. */
export function shutDown(): Promise<void> {
  return threadQueue.close();
}
