/**
 * The agent's voice in the audio thread. Messages in: an ArrayBuffer of Int16 samples,
 * `{mark: name}`, `{clear: true}`. Messages out: `{mark: name, cleared}`, and every 40 ms
 * `{bufferedMs, level, underruns, droppedMs}`.
 */
import { PlaybackQueue } from "./playback_queue.js";

const capacityS = 35;
/** Waited for before an utterance starts, against a stutter in its first moments. */
const startBufferS = 0.06;
const startPatienceS = 0.12;
const statusIntervalS = 0.04;

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = new PlaybackQueue(Math.ceil(capacityS * sampleRate));
    this.playing = false;
    this.waitingSinceS = undefined;
    this.underruns = 0;
    this.lastSample = 0;
    this.sumOfSquares = 0;
    this.summed = 0;
    this.statusAtS = 0;
    this.port.onmessage = ({ data }) => this.take(data);
  }

  take(data) {
    if (data instanceof ArrayBuffer) {
      this.queue.push(new Int16Array(data));
    } else if (data.mark !== undefined) {
      this.queue.mark(data.mark);
    } else if (data.clear) {
      for (const mark of this.queue.clear()) this.port.postMessage({ mark, cleared: true });
      this.playing = false;
    }
  }

  process(_inputs, outputs) {
    const output = outputs[0][0];
    const wasPlaying = this.playing;
    if (!this.playing) this.playing = this.mayStart();
    const count = this.playing ? this.queue.read(output) : 0;
    if (count > 0) this.lastSample = output[count - 1];
    // The end of what is there, and a clear, fade within a few samples instead of clicking.
    for (let i = count; i < output.length; i++) {
      this.lastSample *= 0.95;
      output[i] = this.lastSample;
    }
    for (const mark of this.queue.reachedMarks()) {
      this.port.postMessage({ mark, cleared: false });
      // What follows is another utterance, or nothing.
      if (this.queue.buffered === 0) this.playing = false;
    }
    if (wasPlaying && this.playing && count < output.length) {
      this.underruns++;
      this.playing = false;
    }
    this.report(output);
    return true;
  }

  mayStart() {
    const { buffered, marks } = this.queue;
    if (buffered === 0) {
      this.waitingSinceS = undefined;
      return false;
    }
    this.waitingSinceS ??= currentTime;
    const enough = buffered >= startBufferS * sampleRate || marks.length > 0;
    const patient = currentTime - this.waitingSinceS >= startPatienceS;
    if (enough || patient) this.waitingSinceS = undefined;
    return enough || patient;
  }

  report(output) {
    for (const sample of output) this.sumOfSquares += sample * sample;
    this.summed += output.length;
    if (currentTime - this.statusAtS < statusIntervalS) return;
    this.port.postMessage({
      bufferedMs: (this.queue.buffered / sampleRate) * 1000,
      level: Math.sqrt(this.sumOfSquares / this.summed),
      underruns: this.underruns,
      droppedMs: (this.queue.dropped / sampleRate) * 1000,
    });
    this.statusAtS = currentTime;
    this.sumOfSquares = 0;
    this.summed = 0;
  }
}

registerProcessor("player", Player);
