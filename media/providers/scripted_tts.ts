/** `scripted` text to speech: a sine at -20 dBFS for as long as the text says, in pieces of 100 ms. */
import { completeOptions, ScriptedTtsOptions } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { passFaults, realWaits, type WaitDeps, waitFor } from "#outbound/models/waiting.ts";
import type { TextToSpeech } from "./provider.ts";

const sampleRateHz = 16_000;
const pieceSamples = sampleRateHz / 10;
/** A full-scale sine is 0 dBFS; a tenth of its amplitude is -20 dBFS. */
const amplitude = 32_767 / 10;

/** @throws Error when the options do not fit `ScriptedTtsOptions` */
export function createScriptedTts(settings: ModelSettings, deps: WaitDeps = realWaits): TextToSpeech {
  const options = completeOptions(ScriptedTtsOptions, settings.options);
  let tone: Int16Array | undefined;
  return {
    async *speak(text, context, signal) {
      if (!(await passFaults("tts", options, context.turnIndex, signal))) return;
      if (context.first && !(await waitFor(deps, options.delay_ms, signal))) return;
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
