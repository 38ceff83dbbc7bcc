/**
 * What a caller says, over and over: a question and silence in which the agent answers, then a
 * sentence that falls into the second half of the next answer. Prepared once as wire-ready
 * messages that all callers share.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";

export const callerFrameMs = 20;

export interface CallerSpeech {
  /** One message each 20 ms; the end joins the beginning. */
  readonly frames: readonly Uint8Array[];
  /** Where in the loop each sentence begins. */
  readonly sentenceAtMs: readonly number[];
}

export interface SpeechPlan {
  /** Length of the whole loop. */
  loopMs: number;
  /** When each sentence begins. */
  sentenceAtMs: readonly number[];
}

/**
 * A loop of ten seconds in which the agent, whose answers are `answerMs` long, speaks about half of
 * the time: the first answer is cut off by the second sentence, the second is heard to its end.
 */
export const speechPlan: SpeechPlan & { answerMs: number } = {
  loopMs: 10_000,
  sentenceAtMs: [500, 4500],
  answerMs: 3000,
};

/**
 * The loop as 16-bit samples: `sentence` at each planned time over noise at -60 dBFS, as a quiet
 * room has it. @throws Error when a sentence does not fit before the next one or the end
 */
export function loopSamples(sentence: Int16Array, sampleRateHz: number, plan: SpeechPlan): Int16Array {
  const samplesOf = (ms: number) => Math.round((ms * sampleRateHz) / 1000);
  const loop = new Int16Array(samplesOf(plan.loopMs));
  let noise = 1;
  for (let index = 0; index < loop.length; index += 1) {
    noise = (Math.imul(noise, 1_103_515_245) + 12_345) & 0x7fffffff;
    loop[index] = (noise >> 16) % 33;
  }
  plan.sentenceAtMs.forEach((atMs, index) => {
    const from = samplesOf(atMs);
    const room = samplesOf(plan.sentenceAtMs[index + 1] ?? plan.loopMs) - from;
    if (sentence.length > room) throw new Error(`Cannot fit a sentence of ${sentence.length} samples into ${room}`);
    loop.set(sentence, from);
  });
  return loop;
}

/** Cuts the loop into frames and encodes each. */
export function callerSpeech(
  loop: Int16Array,
  format: AudioFormat,
  plan: SpeechPlan,
  encode: (frame: Int16Array) => Uint8Array,
): CallerSpeech {
  const frameSamples = (format.sample_rate * callerFrameMs) / 1000;
  const frames: Uint8Array[] = [];
  for (let at = 0; at + frameSamples <= loop.length; at += frameSamples) {
    frames.push(encode(loop.subarray(at, at + frameSamples)));
  }
  return { frames, sentenceAtMs: plan.sentenceAtMs };
}

/** How far `audioMs` of the loop (counted on through its repetitions) is from where a sentence begins. */
export function fromSentenceMs({ frames, sentenceAtMs }: CallerSpeech, audioMs: number): number {
  const loopMs = frames.length * callerFrameMs;
  const distances = sentenceAtMs.map((atMs) => {
    const away = Math.abs((audioMs % loopMs) - atMs);
    return Math.min(away, loopMs - away);
  });
  return Math.min(...distances);
}
