/** The page's sound without a browser: resampling, and what the player's queue promises. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { PlaybackQueue } from "./talk/playback_queue.js";
import { Resampler } from "./talk/resampler.js";

function sine(hz: number, rateHz: number, count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin((2 * Math.PI * hz * i) / rateHz));
}

/** RMS of the middle, where the filter has settled. */
function middleRms(samples: Float32Array): number {
  const middle = samples.subarray(samples.length >> 2, (samples.length * 3) >> 2);
  return Math.sqrt(middle.reduce((sum, sample) => sum + sample * sample, 0) / middle.length);
}

describe("the microphone's resampler", () => {
  for (const fromHz of [8000, 16000, 44100, 48000, 96000]) {
    it(`keeps speech from ${fromHz} Hz as loud and as long at 16 kHz`, () => {
      const output = new Resampler(fromHz, 16000).push(sine(1000, fromHz, fromHz));
      assert.ok(Math.abs(output.length - 16000) <= 64, `${output.length} samples`);
      assert.ok(Math.abs(middleRms(output) - Math.SQRT1_2) < 0.01, `RMS ${middleRms(output)}`);
    });
  }

  it("lets nothing above 8 kHz fold back into speech", () => {
    for (const hz of [9500, 12000, 20000]) {
      const rms = middleRms(new Resampler(48000, 16000).push(sine(hz, 48000, 48000)));
      assert.ok(rms < 0.002, `${hz} Hz leaves ${rms}`);
    }
  });

  it("gives the same samples however the input is cut", () => {
    const input = sine(700, 44100, 4410);
    const whole = new Resampler(44100, 16000).push(input);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 }), (lengths) => {
        const resampler = new Resampler(44100, 16000);
        const pieces: number[] = [];
        let at = 0;
        for (const length of lengths) {
          pieces.push(...resampler.push(input.subarray(at, at + length)));
          at = Math.min(input.length, at + length);
        }
        pieces.forEach((sample, i) => {
          assert.ok(Math.abs(sample - (whole[i] ?? 0)) < 1e-3);
        });
      }),
    );
  });
});

describe("the player's queue", () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ do: fc.constant("push" as const), count: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ do: fc.constant("read" as const), count: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ do: fc.constant("mark" as const), count: fc.constant(0) }),
      fc.record({ do: fc.constant("clear" as const), count: fc.constant(0) }),
    ),
    { maxLength: 60 },
  );

  it("plays in order, answers every mark once, and plays nothing that was cleared", () => {
    fc.assert(
      fc.property(steps, (plan) => {
        const queue = new PlaybackQueue(1000);
        let pending: number[] = [];
        let next = 1;
        let marks = 0;
        const answered: string[] = [];
        for (const step of plan) {
          if (step.do === "push") {
            const samples = Int16Array.from({ length: step.count }, () => next++ % 32000);
            const before = queue.dropped;
            queue.push(samples);
            pending.push(...samples.subarray(0, step.count - (queue.dropped - before)));
          } else if (step.do === "read") {
            const output = new Float32Array(step.count);
            const count = queue.read(output);
            const expected = pending.slice(0, step.count);
            assert.deepEqual(
              Array.from(output.subarray(0, count), (sample) => Math.round(sample * 32768)),
              expected,
            );
            pending = pending.slice(count);
            answered.push(...queue.reachedMarks());
          } else if (step.do === "mark") {
            queue.mark(String(marks++));
          } else {
            answered.push(...queue.clear());
            pending = [];
          }
          assert.equal(queue.buffered, pending.length);
        }
        answered.push(...queue.clear());
        assert.deepEqual(
          answered,
          Array.from({ length: marks }, (_, i) => String(i)),
        );
      }),
    );
  });

  it("reaches a mark only when all before it has been played", () => {
    const queue = new PlaybackQueue(100);
    queue.push(new Int16Array(10));
    queue.mark("end");
    queue.push(new Int16Array(10));
    queue.read(new Float32Array(9));
    assert.deepEqual(queue.reachedMarks(), []);
    queue.read(new Float32Array(1));
    assert.deepEqual(queue.reachedMarks(), ["end"]);
    assert.deepEqual(queue.reachedMarks(), []);
  });

  it("drops and counts what does not fit", () => {
    const queue = new PlaybackQueue(100);
    queue.push(new Int16Array(150));
    assert.equal(queue.buffered, 100);
    assert.equal(queue.dropped, 50);
  });
});
