import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createSpeechDetector, type SpeechUpdate, speechMinMs, thresholdsFor } from "./speech_detector.ts";

const windowMs = 20;

/** A copy of each update after windows of 20 ms. */
function updatesFor(probabilities: readonly number[]): SpeechUpdate[] {
  const detector = createSpeechDetector();
  return probabilities.map((probability) => ({ ...detector.update(probability, windowMs) }));
}

/** One character a window: `.` 0, `-` 0.4 (between the thresholds), `#` 1. */
function updatesOf(drawn: string): SpeechUpdate[] {
  return updatesFor([...drawn].map((window) => (window === "#" ? 1 : window === "-" ? 0.4 : 0)));
}

describe("speech detector", () => {
  const table: { name: string; windows: string; events: string[] }[] = [
    { name: "silence is none", windows: "..........", events: [] },
    { name: "40 ms are too short to be speech", windows: "..##....##..", events: [] },
    { name: "speech starts where its first window began", windows: "..###", events: ["start 40"] },
    { name: "what lies between the thresholds starts nothing", windows: "..--------", events: [] },
    { name: "but goes on with what has begun", windows: "..#--", events: ["start 40"] },
    {
      name: "a pause begins with the first window below the lower threshold",
      windows: "###--.",
      events: ["start 0", "pause 100"],
    },
    { name: "a click does not end a pause", windows: "###..##...", events: ["start 0", "pause 60"] },
    { name: "speech of 50 ms does", windows: "###..###", events: ["start 0", "pause 60", "resume 160"] },
    { name: "each pause is told", windows: "###.###.", events: ["start 0", "pause 60", "resume 140", "pause 140"] },
  ];
  for (const { name, windows, events } of table) {
    it(name, () => {
      const told = updatesOf(windows)
        .filter(({ event }) => event !== "none")
        .map(({ event, startMs, stopMs }) => `${event} ${event === "start" ? startMs : stopMs}`);
      assert.deepEqual(told, events);
    });
  }

  it("counts speech without its pauses, and the run since the last one", () => {
    const last = updatesOf("..####..###").at(-1)!;
    assert.deepEqual(
      {
        startMs: last.startMs,
        stopMs: last.stopMs,
        speechMs: last.speechMs,
        runMs: last.runMs,
        silenceMs: last.silenceMs,
      },
      { startMs: 40, stopMs: 220, speechMs: 140, runMs: 60, silenceMs: 0 },
    );
  });

  it("holds the silence while speech may be coming back, and counts it when it does not", () => {
    assert.deepEqual(
      updatesOf("###..##.").map(({ silenceMs }) => silenceMs),
      [0, 0, 0, 20, 40, 40, 40, 100],
    );
  });

  it("stays in a pause until it is told that the utterance is over", () => {
    const detector = createSpeechDetector();
    for (let i = 0; i < 3; i++) detector.update(1, windowMs);
    for (let i = 0; i < 100; i++) detector.update(0, windowMs);
    assert.equal(detector.update(0, windowMs).phase, "trailing");
    detector.endUtterance();
    const next = detector.update(1, windowMs);
    assert.deepEqual([next.phase, next.speechMs, next.silenceMs, next.atMs], ["silence", 0, 0, 105 * windowMs]);
    detector.update(1, windowMs);
    assert.deepEqual({ ...detector.update(1, windowMs) }.startMs, 104 * windowMs);
  });

  it("works on Silero's windows of 32 ms", () => {
    const detector = createSpeechDetector();
    assert.equal(detector.update(0.9, 32).event, "none");
    assert.equal(detector.update(0.9, 32).event, "start");
  });

  it("hears sooner the more sensitive it is", () => {
    const hears = (sensitivity: "low" | "medium" | "high", probability: number) => {
      const detector = createSpeechDetector({ sensitivity });
      for (let i = 0; i < 5; i++) detector.update(probability, windowMs);
      return detector.update(probability, windowMs).phase === "speech";
    };
    assert.deepEqual([hears("low", 0.4), hears("medium", 0.4), hears("high", 0.4)], [false, false, true]);
    assert.deepEqual([hears("low", 0.6), hears("medium", 0.6), hears("high", 0.6)], [false, true, true]);
    assert.deepEqual(thresholdsFor("auto"), { on: 0.5, off: 0.35 });
  });

  it("holds together for any probabilities", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 300 }), (probabilities) => {
        let before: SpeechUpdate | undefined;
        for (const update of updatesFor(probabilities)) {
          assert.ok(update.startMs <= update.stopMs && update.stopMs <= update.atMs);
          assert.ok(update.speechMs <= update.stopMs - update.startMs);
          assert.equal(update.runMs > 0, update.phase === "speech");
          if (update.phase !== "trailing") assert.equal(update.silenceMs, 0);
          if (update.event === "start") {
            assert.equal(before?.phase ?? "silence", "silence");
            assert.ok(update.speechMs >= speechMinMs);
          }
          if (update.event === "pause") assert.equal(before?.phase, "speech");
          if (update.event === "resume") assert.equal(before?.phase, "trailing");
          before = update;
        }
      }),
    );
  });
});
