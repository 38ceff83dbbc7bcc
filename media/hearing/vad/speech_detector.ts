/**
 * From probabilities to speech: pure, no clock but the audio's own. Speech begins with 50 ms above
 * the upper threshold or between both; it pauses below the lower one. Whether a pause ends the
 * caller's turn is not decided here: the detector stays in it until speech resumes (50 ms again, so
 * that a click does not prolong the wait) or `endUtterance` is called.
 */

/** How much of what came before the onset belongs to an utterance. */
export const speechPrefixMs = 300;
export const speechMinMs = 50;

export type Sensitivity = "auto" | "low" | "medium" | "high";
export interface Thresholds {
  /** Speech begins at this probability … */
  on: number;
  /** … and goes on as long as it does not fall below this one. */
  off: number;
}

/** High sensitivity hears soft speech sooner, low is for noisy rooms; auto is medium. */
export function thresholdsFor(sensitivity: Sensitivity): Thresholds {
  switch (sensitivity) {
    case "low":
      return { on: 0.65, off: 0.5 };
    case "high":
      return { on: 0.35, off: 0.2 };
    default:
      return { on: 0.5, off: 0.35 };
  }
}

/** What is known after a window. Times are milliseconds of audio since `reset`. */
export interface SpeechUpdate {
  /** `start`: speech is certain. `pause`: its first silence. `resume`: it goes on after a pause. */
  event: "none" | "start" | "pause" | "resume";
  phase: "silence" | "speech" | "trailing";
  /** End of the window just heard. */
  atMs: number;
  /** Where the utterance began and where its newest speech ended. */
  startMs: number;
  stopMs: number;
  /** Speech in the utterance so far, pauses not counted. */
  speechMs: number;
  /** The present uninterrupted run of speech; 0 in a pause. */
  runMs: number;
  /** The present pause; stands still while a resume is being made certain. */
  silenceMs: number;
}

export interface SpeechDetector {
  /** Takes the next window; answers the same object each time. */
  update(probability: number, windowMs: number): SpeechUpdate;
  /** The utterance is over, or was none: back to silence. */
  endUtterance(): void;
  reset(): void;
}

export function createSpeechDetector(options: { sensitivity?: Sensitivity } = {}): SpeechDetector {
  const { on, off } = thresholdsFor(options.sensitivity ?? "auto");
  const now: SpeechUpdate = {
    event: "none",
    phase: "silence",
    atMs: 0,
    startMs: 0,
    stopMs: 0,
    speechMs: 0,
    runMs: 0,
    silenceMs: 0,
  };
  /** Speech that is not certain yet. */
  let candidateMs = 0;

  function toSilence(): void {
    now.event = "none";
    now.phase = "silence";
    now.speechMs = 0;
    now.runMs = 0;
    now.silenceMs = 0;
    candidateMs = 0;
  }

  /** Outside of speech: counts the candidate; true when it has become certain. */
  function isCertain(probability: number, windowMs: number): boolean {
    const counts = candidateMs > 0 ? probability >= off : probability >= on;
    candidateMs = counts ? candidateMs + windowMs : 0;
    return candidateMs >= speechMinMs;
  }

  function speak(event: "start" | "resume"): void {
    now.event = event;
    now.phase = "speech";
    if (event === "start") {
      now.startMs = now.atMs - candidateMs;
      now.speechMs = 0;
    }
    now.speechMs += candidateMs;
    now.runMs = candidateMs;
    now.stopMs = now.atMs;
    now.silenceMs = 0;
    candidateMs = 0;
  }

  return {
    update(probability, windowMs) {
      now.event = "none";
      now.atMs += windowMs;
      switch (now.phase) {
        case "silence":
          if (isCertain(probability, windowMs)) speak("start");
          break;
        case "speech":
          if (probability >= off) {
            now.speechMs += windowMs;
            now.runMs += windowMs;
            now.stopMs = now.atMs;
          } else {
            now.event = "pause";
            now.phase = "trailing";
            now.runMs = 0;
            now.silenceMs = windowMs;
          }
          break;
        case "trailing":
          if (isCertain(probability, windowMs)) speak("resume");
          else if (candidateMs === 0) now.silenceMs = now.atMs - now.stopMs;
          break;
      }
      return now;
    },
    endUtterance: toSilence,
    reset() {
      toSilence();
      now.atMs = 0;
      now.startMs = 0;
      now.stopMs = 0;
    },
  };
}
