import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { audioFormatFor } from "#contracts/audio_format.ts";
import { callerSpeech, fromSentenceMs, loopSamples } from "./caller_speech.ts";

const plan = { loopMs: 1000, sentenceAtMs: [200, 600] };
const sentence = new Int16Array(16 * 100).fill(9000);

describe("what a caller says", () => {
  it("has the sentence at each planned time and only faint noise elsewhere", () => {
    const loop = loopSamples(sentence, 16_000, plan);
    const isLoud = (atMs: number) => Math.abs(loop[atMs * 16] ?? 0) > 100;
    assert.deepEqual([100, 199, 200, 299, 301, 600, 699, 701, 999].map(isLoud), [
      false,
      false,
      true,
      true,
      false,
      true,
      true,
      false,
      false,
    ]);
  });

  it("is refused when a sentence would run into the next one", () => {
    assert.throws(() => loopSamples(new Int16Array(16 * 401), 16_000, plan), /Cannot fit a sentence/);
  });

  it("is cut into whole frames of 20 ms", () => {
    const loop = loopSamples(sentence, 16_000, plan);
    const speech = callerSpeech(loop, audioFormatFor(), plan, (frame) => new Uint8Array(frame.length * 2));
    assert.deepEqual([speech.frames.length, speech.frames[0]?.length], [50, 640]);
    assert.deepEqual(
      [200, 1190, 5605, 400].map((ms) => fromSentenceMs(speech, ms)),
      [0, 10, 5, 200],
    );
  });
});
