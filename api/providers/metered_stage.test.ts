import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Biller, metered, type StageUse } from "./metered_stage.ts";
import type { LanguageModel, LlmChunk, LlmRequest, Pcm, SpeechToText, TextToSpeech } from "./provider.ts";

const request = { turnId: "turn_1" } as LlmRequest;
const usage: LlmChunk = { kind: "usage", prompt: 7, completion: 2, cached: 1 };
const by = { stage: "llm", provider: "openai" } satisfies Biller;
const second: Pcm = { samples: new Int16Array(16_000), sampleRateHz: 16_000 };

const model = (...chunks: (LlmChunk | Error | Promise<never>)[]): LanguageModel => ({
  async *reply() {
    for (const chunk of chunks) {
      if (chunk instanceof Error) throw chunk;
      yield (await chunk) as LlmChunk;
    }
  },
  close() {},
});

/** What was told of one reply, which is read to its end. */
async function usesOf(asked: LanguageModel, signal = new AbortController().signal): Promise<StageUse[]> {
  const uses: StageUse[] = [];
  const reply = metered<"llm">(asked, by, (use) => uses.push(use)).reply(request, signal);
  await (async () => {
    for await (const _ of reply);
  })().catch(() => {});
  return uses;
}

describe("a metered model", () => {
  it("tells its tokens once, with the turn", async () => {
    const told = { by, turnId: "turn_1", requests: 1, prompt: 7, completion: 2, cached: 1 };
    assert.deepEqual(await usesOf(model({ kind: "text", text: "Hi" }, usage)), [told]);
  });

  it("tells that the vendor told none, and nothing of a request that failed before its first sign", async () => {
    const unreported = { by, turnId: "turn_1", requests: 1, unreported: 1 };
    assert.deepEqual(await usesOf(model({ kind: "text", text: "Hi" })), [unreported]);
    assert.deepEqual(await usesOf(model({ kind: "text", text: "Hi" }, new Error("gone"))), [unreported]);
    assert.deepEqual(await usesOf(model(new Error("429"))), []);
  });

  it("counts a request that is left at the moment it is left", () => {
    const uses: StageUse[] = [];
    const left = new AbortController();
    const reply = metered<"llm">(model(new Promise<never>(() => {})), by, (use) => uses.push(use));
    void reply.reply(request, left.signal)[Symbol.asyncIterator]().next();
    left.abort();
    assert.deepEqual(uses, [{ by, turnId: "turn_1", requests: 1, unreported: 1 }]);
  });
});

describe("a metered voice", () => {
  it("tells the characters of a clause that it spoke, and none of one that failed", async () => {
    const uses: StageUse[] = [];
    const tts: TextToSpeech = {
      async *speak(text) {
        if (text === "fail") throw new Error("500");
        yield second;
        yield second;
      },
      close() {},
    };
    const voice = metered<"tts">(tts, { stage: "tts", provider: "e" }, (use) => uses.push(use));
    for (const text of ["Zürich 🎉", "fail"]) {
      const speech = voice.speak(text, { turnIndex: 0, first: true }, new AbortController().signal);
      await (async () => {
        for await (const _ of speech);
      })().catch(() => {});
    }
    assert.deepEqual(
      uses.map(({ characters }) => characters),
      [8],
    );
  });
});

describe("a metered recognizer", () => {
  const recognizer = (isContinuous: boolean): SpeechToText => ({
    isContinuous,
    write() {},
    finish: async () => ({ text: "", final: true }),
    close() {},
  });
  const audioOf = (isContinuous: boolean, lead: (stt: SpeechToText) => Promise<void>) => {
    const uses: StageUse[] = [];
    const stt = metered<"stt">(recognizer(isContinuous), { stage: "stt", provider: "d" }, (use) => uses.push(use));
    return lead(stt).then(() => {
      stt.close();
      return uses.map(({ audioMs, turnId }) => [audioMs, turnId]);
    });
  };
  const utterance = { ...second, index: 0, turnId: "turn_1", tail: new Int16Array(8000) };
  const { signal } = new AbortController();

  it("that hears everything tells everything, and what comes after the last turn too", async () => {
    const told = await audioOf(true, async (stt) => {
      for (let at = 0; at < 3; at += 1) stt.write(second);
      await stt.finish(utterance, signal);
      stt.write(second);
    });
    assert.deepEqual(told, [
      [3000, "turn_1"],
      [1000, undefined],
    ]);
  });

  it("that is given utterances tells their length, one that takes over for another too", async () => {
    for (const isContinuous of [false, true]) {
      const told = await audioOf(isContinuous, async (stt) => {
        if (!isContinuous) stt.write(second);
        await stt.finish(utterance, signal);
      });
      assert.deepEqual(told, [[1500, "turn_1"]]);
    }
  });
});
