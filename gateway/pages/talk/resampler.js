/**
 * Streaming resampler: windowed sinc (Blackman), low-passed below the lower of the two rates, so
 * that 48 kHz from a microphone does not alias at 16 kHz. Runs in an AudioWorklet, so it allocates
 * only its result.
 */
const halfTaps = 16;
const phases = 256;

export class Resampler {
  /** @param {number} fromHz @param {number} toHz */
  constructor(fromHz, toHz) {
    this.step = fromHz / toHz;
    /** In input samples: a filter for a lower rate is as much longer. */
    this.reach = Math.ceil(halfTaps * Math.max(1, this.step));
    this.kernel = kernelOf(this.reach, Math.min(1, 1 / this.step) * 0.92);
    this.history = new Float32Array(this.reach * 2 + 4096);
    /** Samples in `history`; the first `reach` are silence before the beginning. */
    this.filled = this.reach;
    this.position = this.reach;
  }

  /** @param {Float32Array} input at the first rate @returns {Float32Array} at the second */
  push(input) {
    if (this.step === 1) return input.slice();
    if (this.filled + input.length > this.history.length) {
      const larger = new Float32Array((this.filled + input.length) * 2);
      larger.set(this.history.subarray(0, this.filled));
      this.history = larger;
    }
    this.history.set(input, this.filled);
    this.filled += input.length;

    const count = Math.max(0, Math.ceil((this.filled - this.reach - this.position) / this.step));
    const output = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      output[i] = this.sampleAt(this.position);
      this.position += this.step;
    }
    const spent = Math.floor(this.position) - this.reach;
    if (spent > 0) {
      this.history.copyWithin(0, spent, this.filled);
      this.filled -= spent;
      this.position -= spent;
    }
    return output;
  }

  /** @param {number} position in input samples */
  sampleAt(position) {
    const { history, kernel, reach } = this;
    const whole = Math.floor(position);
    const phase = Math.round((position - whole) * phases);
    let sum = 0;
    for (let tap = -reach + 1; tap < reach; tap++) {
      sum += history[whole + tap] * kernel[Math.abs(tap * phases - phase)];
    }
    return sum;
  }
}

/** One half of the symmetric kernel, `phases` points an input sample, unity gain. */
function kernelOf(reach, cutoff) {
  const length = reach * phases + phases;
  const kernel = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    const x = i / phases;
    if (x >= reach) continue;
    const angle = Math.PI * x * cutoff;
    const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
    const turn = (Math.PI * x) / reach;
    kernel[i] = cutoff * sinc * (0.42 + 0.5 * Math.cos(turn) + 0.08 * Math.cos(2 * turn));
  }
  return kernel;
}
