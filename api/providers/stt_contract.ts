/** What every recognizer must do, whoever makes it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { SpeechToText, SttResult, Utterance } from "./provider.ts";
import { failureContract, isPending, type Subject } from "./stage_contract.ts";

const never = new AbortController().signal;
const sampleRateHz = 16_000;
const frameSamples = sampleRateHz / 50;

/** A second of a voice-like tone: nothing that a recognizer could take for silence. */
function utterance(index = 0): Utterance {
  const samples = Int16Array.from({ length: sampleRateHz }, (_, at) =>
    Math.round(8000 * Math.sin((2 * Math.PI * 220 * at) / sampleRateHz)),
  );
  return { index, samples, sampleRateHz };
}

/** Silence that a recognizer that hears everything hears behind an utterance. */
const tail = new Int16Array((sampleRateHz * 700) / 1000);

/** Hears an utterance as a call gives it: frame by frame, then as a whole. */
async function hear(stt: SpeechToText, { index = 0, signal = never } = {}): Promise<SttResult> {
  const spoken = utterance(index);
  for (const samples of stt.isContinuous ? [spoken.samples, tail] : [spoken.samples]) {
    for (let at = 0; at < samples.length; at += frameSamples) {
      stt.write({ samples: samples.subarray(at, at + frameSamples), sampleRateHz });
    }
  }
  return stt.finish({ ...spoken, tail }, signal);
}

export function sttContract(subject: Subject<SpeechToText>): void {
  it("gives the final text of each utterance, one after the other", async () => {
    const stt = await subject.open("answers");
    for (const index of [0, 1]) {
      const { text, final } = await hear(stt, { index });
      assert.ok(text.length > 0);
      assert.equal(final, true);
    }
    stt.close();
  });

  it("shows partial texts that are not final, before the final one", async () => {
    const stt = await subject.open("answers");
    const partials: SttResult[] = [];
    stt.onPartial = (result) => partials.push(result);
    await hear(stt);
    assert.ok(partials.every(({ final, text }) => !final && text.length > 0));
    const shown = partials.length;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(partials.length, shown, "no partial text after the final one");
  });

  it("understood nothing when it was aborted before", async () => {
    const stt = await subject.open("answers");
    assert.equal((await hear(stt, { signal: AbortSignal.abort() })).text, "");
  });

  it("waits for a vendor that says nothing until it is aborted, and understood nothing", async () => {
    const stt = await subject.open("silent");
    const abort = new AbortController();
    const result = hear(stt, { signal: abort.signal });
    assert.ok(await isPending(result));
    abort.abort();
    assert.equal((await result).text, "");
  });

  it("is closed twice, and written to after that, without harm", async () => {
    const stt = await subject.open("answers");
    stt.close();
    stt.close();
    stt.write(utterance());
  });

  failureContract("stt", subject, (stt) => hear(stt));
}
