/** Voice activity: how likely a window of 16 kHz audio is speech. */

/** One call's detector: it remembers what it heard. */
export interface Vad {
  readonly windowSamples: number;
  readonly sampleRateHz: 16000;
  /** Probability of speech, 0…1, in a window of exactly `windowSamples`. */
  process(window: Int16Array): number;
  /** Forgets the stream: what follows is a new one. */
  reset(): void;
  close(): void;
}
