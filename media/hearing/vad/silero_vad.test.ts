import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { silero16kGolden } from "#test/kit/silero_golden.ts";
import { compileKernel, kernelUrl } from "./build_kernel.ts";
import { readOnnxWeights } from "./onnx_weights.ts";
import { createPlainForward, createWasmForward, loadSileroWeights, type SileroForward } from "./silero_forward.ts";
import { createSileroVad } from "./silero_vad.ts";
import type { Vad } from "./vad.ts";

const rateHz = 16_000;
const sampleCount = 2 * rateHz;

/** The generator of ANSI C's sample `rand`, as noise in -1…1. */
function noiseOf(seed: number): () => number {
  let value = seed;
  return () => {
    value = (Math.imul(value, 1_103_515_245) + 12_345) & 0x7fffffff;
    return ((value >> 8) / (1 << 23)) * 2 - 1;
  };
}

function samplesOf(level: (t: number) => number): Int16Array {
  return Int16Array.from({ length: sampleCount }, (_, i) =>
    Math.max(-32_768, Math.min(32_767, Math.floor(level(i / rateHz) + 0.5))),
  );
}

/** Harmonics of a gliding voice under two moving formants, in syllables of a quarter of a second, over faint noise. */
function voice(): Int16Array {
  const noise = noiseOf(7);
  let phase = 0;
  return samplesOf((t) => {
    const pitch = 130 + 30 * Math.sin(2 * Math.PI * 0.7 * t);
    phase += pitch / rateHz;
    const first = 500 + 250 * Math.sin(2 * Math.PI * 1.7 * t);
    const second = 1500 + 500 * Math.sin(2 * Math.PI * 1.1 * t + 1);
    let sum = 0;
    for (let harmonic = 1; harmonic <= 25; harmonic++) {
      const hz = harmonic * pitch;
      const weight = Math.exp(-(((hz - first) / 150) ** 2)) + 0.6 * Math.exp(-(((hz - second) / 200) ** 2)) + 0.05;
      sum += weight * Math.sin(2 * Math.PI * harmonic * phase);
    }
    return 5000 * sum * Math.max(0, Math.sin(2 * Math.PI * 2 * t)) ** 0.5 + 60 * noise();
  });
}

const noise = noiseOf(1);
const inputs = {
  silence: new Int16Array(sampleCount),
  noise: samplesOf(() => 3000 * noise()),
  tone: samplesOf((t) => 8000 * Math.sin(2 * Math.PI * 440 * t)),
  voice: voice(),
};

function probabilities(vad: Vad, samples: Int16Array): number[] {
  const answers: number[] = [];
  for (let at = 0; at + vad.windowSamples <= samples.length; at += vad.windowSamples) {
    answers.push(vad.process(samples.subarray(at, at + vad.windowSamples)));
  }
  return answers;
}

describe("silero VAD", () => {
  const weights = loadSileroWeights();
  const engines: readonly [string, SileroForward][] = [
    ["WASM", createWasmForward(weights)],
    ["plain JavaScript", createPlainForward(weights)],
  ];

  for (const [engine, forward] of engines) {
    for (const name of ["silence", "noise", "tone", "voice"] as const) {
      it(`answers ${name} as onnxruntime does, in ${engine}`, () => {
        const answers = probabilities(createSileroVad(forward), inputs[name]);
        const expected = silero16kGolden[name];
        assert.equal(answers.length, expected.length);
        for (const [i, answer] of answers.entries()) {
          assert.ok(Math.abs(answer - expected[i]!) < 1e-3, `window ${i}: ${answer}, expected ${expected[i]}`);
        }
      });
    }
  }

  it("tells a voice from what is none", () => {
    assert.ok(Math.max(...probabilities(createSileroVad(), inputs.voice)) > 0.9);
    for (const name of ["silence", "noise", "tone"] as const) {
      assert.ok(Math.max(...probabilities(createSileroVad(), inputs[name])) < 0.1, name);
    }
  });

  it("keeps calls apart that share the weights", () => {
    const alone = probabilities(createSileroVad(), inputs.voice);
    const first = createSileroVad();
    const second = createSileroVad();
    for (const [i, expected] of alone.entries()) {
      const at = i * first.windowSamples;
      second.process(inputs.noise.subarray(at, at + first.windowSamples));
      assert.equal(first.process(inputs.voice.subarray(at, at + first.windowSamples)), expected);
    }
  });

  it("forgets on reset", () => {
    const vad = createSileroVad();
    const fresh = probabilities(vad, inputs.voice);
    vad.reset();
    assert.deepEqual(probabilities(vad, inputs.voice), fresh);
  });

  it("takes full windows only", () => {
    assert.throws(() => createSileroVad().process(new Int16Array(320)), /expected 512/);
  });

  it("runs the kernel that its source compiles to", async () => {
    assert.deepEqual(
      Buffer.from(await compileKernel()),
      await readFile(kernelUrl),
      "silero_kernel.wasm is not what silero_kernel.assembly says: node --import tsx media/hearing/vad/build_kernel.ts",
    );
  });
});

describe("ONNX weights", () => {
  it("are refused when the file is cut off", () => {
    // ModelProto.graph of 100 bytes, of which two are there.
    assert.throws(() => readOnnxWeights(Uint8Array.of(0x3a, 100, 0, 0)), /cut off/);
    assert.throws(() => readOnnxWeights(Uint8Array.of(0x3a)), /cut off/);
  });

  it("are refused when a tensor is not as long as it says", () => {
    // graph { initializer { dims: 2, data_type: FLOAT, raw_data: 4 bytes } }
    const tensor = [0x08, 2, 0x10, 1, 0x4a, 4, 0, 0, 0, 0];
    const file = Uint8Array.of(0x3a, tensor.length + 2, 0x2a, tensor.length, ...tensor);
    assert.throws(() => readOnnxWeights(file), /expected 8 bytes, found 4/);
  });

  it("are read by name, dimensions packed or not, and other fields skipped", () => {
    const name = [0x42, 1, 0x77];
    const value = [0x4a, 4, 0, 0, 0x80, 0x3f];
    for (const dims of [
      [0x08, 1, 0x08, 1],
      [0x0a, 2, 1, 1],
    ]) {
      const tensor = [...dims, 0x10, 1, ...name, ...value];
      const file = Uint8Array.of(0x08, 8, 0x3a, tensor.length + 2, 0x2a, tensor.length, ...tensor);
      assert.deepEqual(readOnnxWeights(file).get("w"), { dims: [1, 1], values: Float32Array.of(1) });
    }
  });
});
