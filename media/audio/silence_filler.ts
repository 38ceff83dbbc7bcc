/**
 * Silence for gaps in the input. A client is asked to send silence continuously; where nothing
 * comes for more than 200 ms (1.5 s in the middle of speech) the gap is filled, so that a turn can end, and after 10 s without any
 * audio the client is warned once. The clock is the caller's.
 *
 * Audio that arrives covers time: its own length, from its arrival or from where the audio before
 * it ends. A client that sends 500 ms twice a second therefore has no gaps. Cover reaches no
 * further ahead than the newest chunk is long (or 200 ms), so that a burst hides no later gap.
 */

export const gapMs = 200;
export const noInputAfterMs = 10_000;
/** How long the rest of speech is waited for when the input stops in the middle of it. */
export const stallMsMax = 1500;
/** Most that is filled at once; what is missing beyond it (a suspended process) is left out. */
const fillMsMax = 1000;

export interface SilenceFiller {
  /** Audio of this length arrived. */
  arrived(atMs: number, durationMs: number): void;
  /**
   * Whole milliseconds of silence to feed now; 0 while the input is covered. In the middle of speech
   * (`isSpeech`) a gap is no silence yet: the link may have stalled, and 1.5 s are waited for the rest.
   */
  takeSilenceMs(nowMs: number, isSpeech?: boolean): number;
  /** True once in a gap that lasts 10 s. */
  takeNoInputWarning(nowMs: number): boolean;
  /** The time before now was no gap (the link was lost and is back). */
  restart(nowMs: number): void;
}

export function createSilenceFiller(startMs: number): SilenceFiller {
  let coveredUntilMs = startMs;
  let lastArrivalMs = startMs;
  let isFilling = false;
  let isWarned = false;
  return {
    arrived(atMs, durationMs) {
      if (durationMs <= 0) return;
      const aheadMsMax = Math.max(durationMs, gapMs);
      coveredUntilMs = Math.min(Math.max(coveredUntilMs, atMs) + durationMs, atMs + aheadMsMax);
      lastArrivalMs = atMs;
      isFilling = false;
      isWarned = false;
    },
    takeSilenceMs(nowMs, isSpeech = false) {
      const missingMs = nowMs - coveredUntilMs;
      if (isSpeech && !isFilling && missingMs <= stallMsMax) return 0;
      if (missingMs < 1 || (!isFilling && missingMs <= gapMs)) return 0;
      isFilling = true;
      if (missingMs > fillMsMax) {
        coveredUntilMs = nowMs;
        return fillMsMax;
      }
      const fillMs = Math.floor(missingMs);
      coveredUntilMs += fillMs;
      return fillMs;
    },
    takeNoInputWarning(nowMs) {
      if (isWarned || nowMs - lastArrivalMs <= noInputAfterMs) return false;
      isWarned = true;
      return true;
    },
    restart(nowMs) {
      coveredUntilMs = nowMs;
      lastArrivalMs = nowMs;
      isFilling = false;
      isWarned = false;
    },
  };
}
