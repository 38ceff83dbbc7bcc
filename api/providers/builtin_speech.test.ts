import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import type { Pcm, SpeakContext, SttResult, TextToSpeech, WaitDeps } from "./provider.ts";
import { loadStages } from "./stages.ts";

const stages = await loadStages();
const settings = (provider: string, options: Record<string, unknown>): ModelSettings => ({
  provider,
  language: "en",
  options,
});
const never = new AbortController().signal;
const first: SpeakContext = { turnIndex: 0, first: true };

/** An utterance of silence. */
function utterance(index: number, ms = 1000, sampleRateHz = 16_000) {
  return { index, samples: new Int16Array((ms * sampleRateHz) / 1000), sampleRateHz };
}

async function speech(tts: TextToSpeech, text: string, context = first, signal = never): Promise<Pcm[]> {
  const pieces: Pcm[] = [];
  for await (const piece of tts.speak(text, context, signal)) pieces.push(piece);
  return pieces;
}

function joined(pieces: Pcm[]): Int16Array {
  return Int16Array.from(pieces.flatMap(({ samples }) => [...samples]));
}

/** Waits that pass at once and are written down. */
function recordedWaits(): { waited: number[]; deps: WaitDeps } {
  const waited: number[] = [];
  return { waited, deps: { sleep: async (ms) => void waited.push(ms) } };
}

for (const name of ["echo", "scripted"]) {
  describe(`stt ${name}, faults`, () => {
    it("waits delay_ms before its final text", async () => {
      const { waited, deps } = recordedWaits();
      await stages.stt(settings(name, { delay_ms: 80 }), { waits: deps }).finish(utterance(0), never);
      assert.deepEqual(waited, [80]);
    });

    it("fails on the turns of fail_on, counted from 1", async () => {
      const stt = stages.stt(settings(name, { fail_on: [2] }));
      await stt.finish(utterance(0), never);
      await assert.rejects(stt.finish(utterance(1), never), { name: "ProviderError", stage: "stt" });
      await stt.finish(utterance(2), never);
    });

    it("hangs on the turns of hang_on until it is aborted, then understood nothing", async () => {
      const abort = new AbortController();
      const result = stages.stt(settings(name, { hang_on: [1] })).finish(utterance(0), abort.signal);
      const winner = await Promise.race([result, new Promise((resolve) => setImmediate(resolve, "nothing yet"))]);
      assert.equal(winner, "nothing yet");
      abort.abort();
      assert.equal((await result).text, "");
    });
  });
}

describe("stt scripted", () => {
  it("gives the n-th transcript to the n-th utterance, and the last one from then on", async () => {
    const stt = stages.stt(settings("scripted", { transcripts: ["One.", "Two."] }));
    const heard: string[] = [];
    for (let index = 0; index < 3; index += 1) heard.push((await stt.finish(utterance(index), never)).text);
    assert.deepEqual(heard, ["One.", "Two.", "Two."]);
  });

  it("understands nothing without transcripts", async () => {
    assert.equal((await stages.stt(settings("scripted", {})).finish(utterance(0), never)).text, "");
  });

  it("shows a word more for every 300 ms of speech, never all of them, and starts anew each time", async () => {
    const stt = stages.stt(settings("scripted", { transcripts: ["I would like a room.", "For two."] }));
    const partials: SttResult[] = [];
    stt.onPartial = (result) => partials.push(result);
    const hear = (ms: number) => {
      for (let at = 0; at < ms; at += 20) stt.write(utterance(0, 20));
    };
    hear(700);
    assert.deepEqual(
      partials.map(({ text }) => text),
      ["I", "I would"],
    );
    assert.ok(partials.every(({ final }) => !final));
    hear(3000);
    assert.equal(partials.at(-1)?.text, "I would like a");
    await stt.finish(utterance(0), never);
    hear(3000);
    assert.equal(partials.at(-1)?.text, "For");
  });

  it("shows nothing with partials off", () => {
    const stt = stages.stt(settings("scripted", { transcripts: ["One two three."], partials: false }));
    stt.onPartial = () => assert.fail("a partial result");
    stt.write(utterance(0, 5000));
  });
});

describe("stt echo", () => {
  it("says how long the speech was", async () => {
    const result = await stages.stt(settings("echo", {})).finish(utterance(0, 1500, 8000), never);
    assert.deepEqual(result, { text: "(1.5 s of speech)", final: true });
  });
});

for (const name of ["echo", "scripted"]) {
  describe(`tts ${name}, faults`, () => {
    const audio = { samples: Int16Array.of(1, 2, 3), sampleRateHz: 8000 };

    it("waits delay_ms before the first clause only", async () => {
      const { waited, deps } = recordedWaits();
      const tts = stages.tts(settings(name, { delay_ms: 70 }), { waits: deps });
      await speech(tts, "One.", { ...first, audio });
      await speech(tts, "Two.", { turnIndex: 0, first: false, audio });
      assert.deepEqual(waited, [70]);
    });

    it("fails on the turns of fail_on, counted from 1", async () => {
      const tts = stages.tts(settings(name, { fail_on: [2] }));
      await speech(tts, "One.", { turnIndex: 0, first: true, audio });
      await assert.rejects(speech(tts, "Two.", { turnIndex: 1, first: true, audio }), {
        name: "ProviderError",
        stage: "tts",
      });
    });

    it("hangs on the turns of hang_on until it is aborted", async () => {
      const abort = new AbortController();
      const pieces = speech(stages.tts(settings(name, { hang_on: [1] })), "One.", { ...first, audio }, abort.signal);
      abort.abort();
      assert.deepEqual(await pieces, []);
    });
  });
}

describe("tts echo", () => {
  it("says the audio that it is given as it is, and text alone without a sound", async () => {
    const audio = { samples: Int16Array.of(5, -5), sampleRateHz: 8000 };
    const tts = stages.tts(settings("echo", {}));
    assert.deepEqual(await speech(tts, "(0.1 s of speech)", { ...first, audio }), [audio]);
    assert.deepEqual(await speech(tts, "Hello."), []);
  });
});

describe("tts scripted", () => {
  it("is as long as its text says, in pieces of at most 100 ms", async () => {
    const pieces = await speech(stages.tts(settings("scripted", {})), "twenty-one characters");
    assert.ok(pieces.every(({ samples, sampleRateHz }) => sampleRateHz === 16_000 && samples.length <= 1600));
    assert.equal(joined(pieces).length, 21 * 50 * 16);
    const slow = await speech(stages.tts(settings("scripted", { ms_per_char: 100 })), "abc");
    assert.equal(joined(slow).length, 300 * 16);
    assert.deepEqual(await speech(stages.tts(settings("scripted", { ms_per_char: 0 })), "abc"), []);
  });

  it("is a sine of tone_hz at -20 dBFS without a step between pieces", async () => {
    for (const tone_hz of [440, 1000, 333]) {
      const samples = joined(await speech(stages.tts(settings("scripted", { tone_hz })), "a".repeat(50)));
      let crossings = 0;
      let squares = 0;
      for (let i = 1; i < samples.length; i += 1) {
        const [before, now] = [samples[i - 1] ?? 0, samples[i] ?? 0];
        if (before < 0 && now >= 0) crossings += 1;
        squares += now * now;
        const steepest = (2 * Math.PI * tone_hz * 3277) / 16_000 + 2;
        assert.ok(Math.abs(now - before) <= steepest, `a step at sample ${i}`);
      }
      assert.ok(Math.abs(crossings / (samples.length / 16_000) - tone_hz) <= 1);
      const fullScaleSine = 32_767 / Math.SQRT2;
      const dbfs = 20 * Math.log10(Math.sqrt(squares / samples.length) / fullScaleSine);
      assert.ok(Math.abs(dbfs + 20) < 0.1, `${dbfs} dBFS`);
    }
  });

  it("stops between pieces when it is aborted", async () => {
    const abort = new AbortController();
    let pieces = 0;
    for await (const _ of stages.tts(settings("scripted", {})).speak("a".repeat(1000), first, abort.signal)) {
      pieces += 1;
      if (pieces === 3) abort.abort();
    }
    assert.equal(pieces, 3);
  });

  it("gives pieces that are the receiver's to write to", async () => {
    const tts = stages.tts(settings("scripted", {}));
    for (const { samples } of await speech(tts, "abc")) samples.fill(9);
    assert.ok(joined(await speech(tts, "abc")).some((sample) => sample !== 9));
  });
});
