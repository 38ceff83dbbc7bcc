/** `flite`: real speech, embedded. English; voices `slt` (the default), `kal16`, `rms`, `awb`; 16 kHz. */
import { completeOptions, FliteOptions } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { passFaults } from "#outbound/models/waiting.ts";
import { clauseCharsMax, clausesOf } from "./clauses.ts";
import { FliteQueue } from "./flite_queue.ts";
import type { TextToSpeech } from "./provider.ts";
import { spokenText } from "./spoken_text.ts";

const pieceMs = 100;
/** What stays of the silence that a clause begins with: an answer begins at once, a later clause after a breath. */
const firstSilenceMs = 30;
const laterSilenceMs = 100;

/** The one of this thread. */
const threadQueue = new FliteQueue();

/** @throws Error when the options do not fit `FliteOptions` */
export function createFliteTts(
  settings: ModelSettings,
  _deps?: unknown,
  queue: FliteQueue = threadQueue,
): TextToSpeech {
  const options = completeOptions(FliteOptions, settings.options);
  const voice = settings.voice ?? "slt";
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
export function warmUpFlite(): Promise<void> {
  return threadQueue.start();
}

/** Stops the synthesizer of this thread. */
export function closeFlite(): Promise<void> {
  return threadQueue.close();
}
