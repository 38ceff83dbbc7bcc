import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createEnergyVad } from "./energy_vad.ts";
import { createSpeechDetector } from "./speech_detector.ts";

const rateHz = 16_000;
const ms = (milliseconds: number): number => (milliseconds * rateHz) / 1000;
const gain = (db: number): number => 10 ** (db / 20);

/** A sample at a time, with a root mean square of about 1. */
type Source = () => number;

function whiteNoise(seed = 1): Source {
  let value = seed;
  return () => {
    value = (Math.imul(value, 1_103_515_245) + 12_345) & 0x7fffffff;
    return ((value >> 8) / (1 << 22) - 1) * Math.sqrt(3);
  };
}

/** Noise with the slope of an office (about 6 dB an octave down above 100 Hz) that swells by 3 dB twice in three seconds. */
function officeNoise(): Source {
  const white = whiteNoise(3);
  let low = 0;
  let i = 0;
  return () => {
    low += 0.04 * (white() - low);
    return low * 7 * gain(1.5 * Math.sin((2 * Math.PI * 0.66 * i++) / rateHz));
  };
}

/** Mains hum with harmonics. */
function hum(): Source {
  let i = 0;
  return () => {
    const angle = (2 * Math.PI * 50 * i++) / rateHz;
    return 1.2 * Math.sin(angle) + 0.6 * Math.sin(2 * angle) + 0.4 * Math.sin(3 * angle) + 0.2 * Math.sin(5 * angle);
  };
}

/** Like speech: harmonics under moving formants, four syllables a second that swell by 15 dB, a hissing sound between. */
function speech(): Source {
  const hiss = whiteNoise(5);
  let phase = 0;
  let i = 0;
  let before = 0;
  return () => {
    const t = i++ / rateHz;
    const pitch = 120 + 20 * Math.sin(2 * Math.PI * 0.8 * t);
    phase += pitch / rateHz;
    const formants = [450 + 200 * Math.sin(2 * Math.PI * 1.3 * t), 1400 + 400 * Math.sin(2 * Math.PI * 0.9 * t), 2600];
    let sum = 0;
    for (let harmonic = 1; harmonic <= 25; harmonic++) {
      const hz = harmonic * pitch;
      for (const [index, formant] of formants.entries()) {
        const weight = Math.exp(-(((hz - formant) / 130) ** 2)) / (index + 1);
        if (weight > 0.001) sum += weight * Math.sin(2 * Math.PI * harmonic * phase);
      }
    }
    const syllable = Math.sin(2 * Math.PI * 4 * t);
    const noise = hiss();
    const sharp = noise - before; // 6 dB an octave up: a sibilant
    before = noise;
    return syllable > 0 ? 1.1 * sum * gain(15 * (syllable - 1)) : 0.12 * sharp * -syllable;
  };
}

interface Heard {
  /** Where speech began, and where it was over after 500 ms of silence. */
  starts: number[];
  ends: number[];
}

/** Hears `sampleCount` samples of `level`, as a call does. */
function hear(durationMs: number, sampleAt: (index: number) => number): Heard {
  const vad = createEnergyVad();
  const detector = createSpeechDetector();
  const window = new Int16Array(vad.windowSamples);
  const heard: Heard = { starts: [], ends: [] };
  for (let at = 0; at + window.length <= ms(durationMs); at += window.length) {
    for (let i = 0; i < window.length; i++) {
      window[i] = Math.max(-32_768, Math.min(32_767, Math.round(32_768 * sampleAt(at + i))));
    }
    const { event, silenceMs, startMs, stopMs } = detector.update(vad.process(window), 20);
    if (event === "start") heard.starts.push(startMs);
    if (silenceMs >= 500) {
      heard.ends.push(stopMs);
      detector.endUtterance();
    }
  }
  return heard;
}

/** Speech of 1.5 s at 2, 5 and 8 s, at a level in dBFS, over noise so many dB below it. */
const spokenAt = [2000, 5000, 8000];
const spokenMs = 1500;
function conversation(noise: Source, speechDb: number, snrDb: number): Heard {
  const voice = speech();
  return hear(11_000, (index) => {
    const atMs = (index * 1000) / rateHz;
    const speaks = spokenAt.some((start) => atMs >= start && atMs < start + spokenMs);
    return gain(speechDb) * ((speaks ? voice() : 0) + gain(-snrDb) * noise());
  });
}

function assertHeard(heard: Heard, name: string): void {
  assert.equal(heard.starts.length, spokenAt.length, `${name}: speech at ${heard.starts.join()}`);
  assert.equal(heard.ends.length, spokenAt.length, name);
  for (const [i, start] of spokenAt.entries()) {
    assert.ok(Math.abs(heard.starts[i]! - start) <= 100, `${name}: began at ${heard.starts[i]}, not ${start}`);
    const end = start + spokenMs;
    assert.ok(Math.abs(heard.ends[i]! - end) <= 200, `${name}: ended at ${heard.ends[i]}, not ${end}`);
  }
}

describe("energy VAD", () => {
  it("hears speech in silence at any level from loud to soft", () => {
    for (const level of [-10, -20, -30, -40])
      assertHeard(
        conversation(() => 0, level, 0),
        `${level} dBFS`,
      );
  });

  it("hears speech over noise, hum and an office", () => {
    for (const snr of [30, 20, 15]) {
      assertHeard(conversation(whiteNoise(), -26, snr), `white noise, ${snr} dB`);
      assertHeard(conversation(hum(), -26, snr), `hum, ${snr} dB`);
      assertHeard(conversation(officeNoise(), -26, snr), `office, ${snr} dB`);
    }
  });

  it("hears no speech in noise that goes on, at any level", () => {
    for (const [name, noise] of [
      ["white noise", whiteNoise],
      ["hum", hum],
      ["office", officeNoise],
    ] as const) {
      for (const level of [-80, -65, -50]) {
        const source = noise();
        assert.deepEqual(hear(10_000, () => gain(level) * source()).starts, [], `${name} at ${level} dBFS`);
      }
    }
  });

  it("gets used to a loud noise within a second, from the call's first window or later", () => {
    for (const beginsMs of [0, 3000]) {
      const noise = whiteNoise();
      const heard = hear(10_000, (index) => gain((index * 1000) / rateHz < beginsMs ? -65 : -30) * noise());
      assert.ok(heard.starts.length <= 1, heard.starts.join());
      for (const end of heard.ends) assert.ok(end <= beginsMs + 1000, `took it for speech until ${end}`);
      assert.equal(heard.ends.length, heard.starts.length);
    }
  });

  it("hears speech that begins with the call", () => {
    const voice = speech();
    const heard = hear(3000, (index) => (index < ms(1500) ? gain(-24) * voice() : 0));
    assert.equal(heard.starts.length, 1);
    assert.ok(heard.starts[0]! <= 60, `${heard.starts[0]}`);
  });

  it("does not take clicks for speech", () => {
    const noise = whiteNoise();
    const heard = hear(10_000, (index) => gain(index % ms(400) < ms(5) ? -15 : -60) * noise());
    assert.deepEqual(heard.starts, []);
  });

  it("is not misled by digital silence in between", () => {
    const noise = whiteNoise();
    // A noise gate that opens for half a second at a time.
    const heard = hear(10_000, (index) => (index % ms(1000) < ms(500) ? gain(-50) * noise() : 0));
    assert.deepEqual(heard.starts, []);
  });

  it("is not misled by an offset", () => {
    assert.deepEqual(
      hear(5000, () => 0.3).starts.filter((start) => start > 100),
      [],
    );
  });

  it("answers probabilities, also for full scale, and forgets on reset", () => {
    const vad = createEnergyVad();
    const noise = whiteNoise();
    const windows = Array.from({ length: 100 }, () =>
      Int16Array.from({ length: 320 }, () => (noise() > 0 ? 32_767 : -32_768)),
    );
    const first = windows.map((window) => vad.process(window));
    for (const probability of first) assert.ok(probability >= 0 && probability <= 1);
    vad.reset();
    assert.deepEqual(
      windows.map((window) => vad.process(window)),
      first,
    );
    assert.throws(() => vad.process(new Int16Array(512)), /expected 320/);
  });
});
