/** What every synthesizer must do, whoever makes it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Pcm, SpeakContext, TextToSpeech } from "./provider.ts";
import { failureContract, isPending, type Subject } from "./stage_contract.ts";

const never = new AbortController().signal;
const sentence = "Breakfast is served from seven to ten in the winter garden.";
/** The model's own audio: `echo` says nothing else. Two pieces long, so that there is a middle. */
const audio: Pcm = { samples: new Int16Array(4000).fill(1000), sampleRateHz: 16_000 };
const first: SpeakContext = { turnIndex: 0, first: true, audio };

async function piecesOf(tts: TextToSpeech, text = sentence, context = first, signal = never): Promise<Pcm[]> {
  const pieces: Pcm[] = [];
  for await (const piece of tts.speak(text, context, signal)) pieces.push(piece);
  return pieces;
}

export function ttsContract(subject: Subject<TextToSpeech>): void {
  it("gives sound, in pieces of one rate", async () => {
    const tts = await subject.open("answers");
    const pieces = await piecesOf(tts);
    assert.ok(pieces.length > 0);
    assert.ok(pieces.every(({ samples }) => samples.length > 0));
    assert.equal(new Set(pieces.map(({ sampleRateHz }) => sampleRateHz)).size, 1);
    assert.ok(pieces.some(({ samples }) => samples.some((sample) => Math.abs(sample) > 100)));
    tts.close();
  });

  it("says clause after clause, and the next turn too", async () => {
    const tts = await subject.open("answers");
    await piecesOf(tts);
    assert.ok((await piecesOf(tts, "In the winter garden.", { ...first, first: false })).length > 0);
    assert.ok((await piecesOf(tts, "Good evening.", { ...first, turnIndex: 1 })).length > 0);
  });

  it("says nothing to a request that was aborted before", async () => {
    assert.deepEqual(await piecesOf(await subject.open("answers"), sentence, first, AbortSignal.abort()), []);
  });

  it("ends without an error and without another piece when it is aborted in mid-sentence", async () => {
    const tts = await subject.open("answers");
    const abort = new AbortController();
    let pieces = 0;
    for await (const _ of tts.speak(sentence, first, abort.signal)) {
      pieces += 1;
      abort.abort();
    }
    assert.equal(pieces, 1);
  });

  it("waits for a vendor that says nothing until it is aborted, then ends without an error", async () => {
    const tts = await subject.open("silent");
    const abort = new AbortController();
    const pieces = piecesOf(tts, sentence, first, abort.signal);
    assert.ok(await isPending(pieces));
    abort.abort();
    assert.deepEqual(await pieces, []);
  });

  it("is closed twice without harm", async () => {
    const tts = await subject.open("answers");
    tts.close();
    tts.close();
  });

  failureContract("tts", subject, (tts) => piecesOf(tts));
}
