import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { sampleRatesHz } from "#contracts/audio_format.ts";
import { createResampler } from "./resampler.ts";

function sine(hz: number, rateHz: number, sampleCount: number, amplitude = 10_000): Int16Array {
  return Int16Array.from({ length: sampleCount }, (_, i) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * i) / rateHz)),
  );
}

/** Resamples `samples` in chunks of the given lengths, which repeat. */
function inChunks(samples: Int16Array, fromHz: number, toHz: number, lengths: readonly number[]): Int16Array {
  const resampler = createResampler(fromHz, toHz);
  const made: number[] = [];
  for (let at = 0, turn = 0; at < samples.length; turn++) {
    const length = lengths[turn % lengths.length]!;
    for (const sample of resampler.process(samples.subarray(at, at + length))) made.push(sample);
    at += length;
  }
  resampler.close();
  return Int16Array.from(made);
}

/** Signal to everything else, in dB: the best fit of a sine of `hz` against what is left without it. */
function snrDb(samples: Int16Array, hz: number, rateHz: number): number {
  let sines = 0;
  let cosines = 0;
  let power = 0;
  for (const [i, sample] of samples.entries()) {
    const angle = (2 * Math.PI * hz * i) / rateHz;
    sines += sample * Math.sin(angle);
    cosines += sample * Math.cos(angle);
    power += sample * sample;
  }
  const signal = (2 * (sines * sines + cosines * cosines)) / samples.length;
  return 10 * Math.log10(signal / Math.max(1e-9, power - signal));
}

const pairs = sampleRatesHz.flatMap((from) =>
  sampleRatesHz.filter((to) => to !== from).map((to) => [from, to] as const),
);

describe("resampler", () => {
  it("keeps a tone clean and in tune between any two rates, in proportion", () => {
    for (const [from, to] of pairs) {
      const made = inChunks(sine(1000, from, from), from, to, [from / 50]);
      assert.ok(Math.abs(made.length - to) <= 2, `${from} to ${to} Hz makes ${made.length} samples a second`);
      // From the middle, where the filter is full; whole periods.
      const middle = made.subarray(to / 10, to / 10 + to / 2);
      const snr = snrDb(middle, 1000, to);
      assert.ok(snr > 60, `${from} to ${to} Hz has an SNR of ${snr.toFixed(1)} dB`);
    }
  });

  it("removes what the lower rate cannot hold", () => {
    const made = inChunks(sine(5000, 16_000, 16_000), 16_000, 8000, [320]);
    const loudest = made.subarray(800).reduce((max, sample) => Math.max(max, Math.abs(sample)), 0);
    assert.ok(loudest < 10, `an alias of ${loudest} is left of 10000`);
  });

  it("makes the same samples however the input is cut", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...pairs),
        fc.array(fc.integer({ min: 1, max: 7000 }), { minLength: 1, maxLength: 8 }),
        ([from, to], lengths) => {
          const input = sine(700, from, 12_000);
          assert.deepEqual(inChunks(input, from, to, lengths), inChunks(input, from, to, [input.length]));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("delays by what it says", () => {
    for (const [from, to] of [
      [8000, 16_000],
      [48_000, 16_000],
      [16_000, 44_100],
    ] as const) {
      const resampler = createResampler(from, to);
      const click = new Int16Array(from / 10);
      click[0] = 20_000;
      const made = resampler.process(click);
      const peakMs = (made.indexOf(made.reduce((max, sample) => Math.max(max, sample), 0)) * 1000) / to;
      assert.ok(
        Math.abs(peakMs - resampler.latencyMs) < 0.2,
        `${from} to ${to}: ${peakMs} ms, said ${resampler.latencyMs}`,
      );
      assert.ok(resampler.latencyMs <= 5);
      resampler.close();
    }
  });

  it("hands equal rates through as they are", () => {
    const resampler = createResampler(16_000, 16_000);
    const samples = sine(440, 16_000, 320);
    assert.equal(resampler.process(samples), samples);
    assert.equal(resampler.latencyMs, 0);
  });

  it("keeps calls apart, and gives closed states back", () => {
    const input = sine(440, 8000, 800);
    const alone = inChunks(input, 8000, 16_000, [160]);
    // Enough opening and closing that a leak of states would fill the module's memory.
    for (let i = 0; i < 3000; i++) createResampler(44_100, 48_000).close();
    const many = Array.from({ length: 40 }, () => createResampler(8000, 16_000));
    const made: number[][] = many.map(() => []);
    for (let at = 0; at < input.length; at += 160) {
      for (const [i, resampler] of many.entries()) made[i]!.push(...resampler.process(input.subarray(at, at + 160)));
    }
    for (const [i, resampler] of many.entries()) {
      assert.deepEqual(Int16Array.from(made[i]!), alone);
      resampler.close();
      resampler.close();
    }
    assert.throws(() => many[0]!.process(input), /closed/);
  });

  it("forgets the stream on reset", () => {
    const resampler = createResampler(8000, 16_000);
    const fresh = resampler.process(sine(440, 8000, 160)).slice();
    resampler.process(sine(1000, 8000, 77));
    resampler.reset();
    assert.deepEqual(resampler.process(sine(440, 8000, 160)).slice(), fresh);
    resampler.close();
  });

  it("refuses rates that are none of ours", () => {
    assert.throws(() => createResampler(0, 16_000), /expected 8000 to 48000/);
    assert.throws(() => createResampler(16_000, Number.NaN), /expected 8000 to 48000/);
  });
});
