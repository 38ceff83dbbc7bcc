/** An utterance whole, for recognizers that hear ends of words in what came after the newest speech. */
import type { Pcm, Utterance } from "./provider.ts";

export function withTail({ samples, tail, sampleRateHz }: Utterance): Pcm {
  return { samples: tail ? joined([samples, tail], samples.length + tail.length) : samples, sampleRateHz };
}

/** @param length of all parts together */
export function joined(parts: readonly Int16Array[], length: number): Int16Array {
  const whole = new Int16Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
