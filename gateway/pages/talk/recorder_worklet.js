/** The microphone's side in the audio thread: any rate in, 16 kHz Int16 frames of 20 ms out. */
import { Resampler } from "./resampler.js";

const targetHz = 16000;
const frameSamples = 320;

class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, targetHz);
    this.frame = new Int16Array(frameSamples);
    this.filled = 0;
  }

  process(inputs) {
    const mono = inputs[0]?.[0];
    if (!mono) return true;
    for (const sample of this.resampler.push(mono)) {
      this.frame[this.filled++] = Math.max(-32768, Math.min(32767, Math.round(sample * 32767)));
      if (this.filled === frameSamples) {
        this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
        this.frame = new Int16Array(frameSamples);
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
