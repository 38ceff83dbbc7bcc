import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { samplesOf, WavError, wavOf } from "./wav.ts";

async function read(bytes: Uint8Array, cutsAt: number[], bareRateHz = 24_000) {
  const cuts = [...new Set(cutsAt.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  async function* chunks() {
    let from = 0;
    for (const to of [...cuts, bytes.length]) {
      yield bytes.slice(from, to);
      from = to;
    }
  }
  const samples: number[] = [];
  const rates = new Set<number>();
  for await (const piece of samplesOf(chunks(), bareRateHz)) {
    samples.push(...piece.samples);
    rates.add(piece.sampleRateHz);
  }
  return { samples, rates: [...rates] };
}

const sound = fc.array(fc.integer({ min: -32_768, max: 32_767 }), { minLength: 2, maxLength: 200 });
const cuts = fc.array(fc.nat(500), { maxLength: 8 });

describe("WAV", () => {
  it("gives back what was written, however it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(sound, cuts, fc.constantFrom(8000, 16_000, 44_100), async (given, at, sampleRateHz) => {
        const { samples, rates } = await read(wavOf({ samples: Int16Array.from(given), sampleRateHz }), at);
        assert.deepEqual([samples, rates], [given, [sampleRateHz]]);
      }),
    );
  });

  it("takes bytes without a header for samples", async () => {
    await fc.assert(
      fc.asyncProperty(sound, cuts, async (given, at) => {
        const bytes = new Uint8Array(Int16Array.from([1, ...given]).buffer);
        const { samples, rates } = await read(bytes, at);
        assert.deepEqual([samples, rates], [[1, ...given], [24_000]]);
      }),
    );
  });

  it("refuses stereo, and what ends in its header", async () => {
    const wav = wavOf({ samples: new Int16Array(4), sampleRateHz: 8000 });
    await assert.rejects(read(wav.slice(0, 30), []), WavError);
    wav[22] = 2;
    await assert.rejects(read(wav, []), WavError);
  });
});
