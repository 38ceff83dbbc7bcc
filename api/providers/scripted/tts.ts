import type { StageRequest, TextToSpeech } from "../provider.ts";
import { passFaults, waitFor } from "../waiting.ts";
import type { ScriptedTtsOptions } from "./options.ts";

const sampleRateHz = 16_000;
const pieceSamples = sampleRateHz / 10;
/** A full-scale sine is 0 dBFS; a tenth of its amplitude is -20 dBFS. */
const amplitude = 32_767 / 10;

/** A sine at -20 dBFS for as long as the text says, in pieces of 100 ms. */
export function open({ options, waits }: StageRequest<ScriptedTtsOptions>): TextToSpeech {
  let tone: Int16Array | undefined;
  return {
    async *speak(text, context, signal) {
      if (!(await passFaults("tts", options, context.turnIndex, signal))) return;
      if (context.first && !(await waitFor(waits, options.delay_ms, signal))) return;
      tone ??= oneSecondOf(options.tone_hz);
      const total = Math.round((text.length * options.ms_per_char * sampleRateHz) / 1000);
      for (let at = 0; at < total && !signal.aborted; at += pieceSamples) {
        const from = at % sampleRateHz;
        yield { samples: tone.slice(from, from + Math.min(pieceSamples, total - at)), sampleRateHz };
      }
    },
    close() {},
  };
}

/** A whole number of periods, so that seconds join without a step. */
function oneSecondOf(toneHz: number): Int16Array {
  const samples = new Int16Array(sampleRateHz);
  for (let i = 0; i < sampleRateHz; i += 1) {
    samples[i] = Math.round(amplitude * Math.sin((2 * Math.PI * toneHz * i) / sampleRateHz));
  }
  return samples;
}
