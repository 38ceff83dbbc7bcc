import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import type { HistoryItem, LanguageModel, LlmChunk, LlmRequest } from "./language_model.ts";
import { loadStages } from "./stages.ts";
import { realWaits, waitFor } from "./waiting.ts";

const stages = await loadStages();
const settings = (provider: string, options: Record<string, unknown>): ModelSettings => ({
  provider,
  language: "en",
  options,
});

function request(turnIndex: number, text: string, more: Partial<LlmRequest> = {}): LlmRequest {
  const history: HistoryItem[] = [{ role: "user", text }];
  return { instructions: "", history, turnIndex, inputKind: "text", unrecognized: false, tools: [], ...more };
}

async function reply(model: LanguageModel, asked: LlmRequest, signal = new AbortController().signal) {
  const chunks: LlmChunk[] = [];
  for await (const chunk of model.reply(asked, signal)) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks: LlmChunk[]) => chunks.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("");

/** Waits that pass at once and are written down. */
function recordedWaits() {
  const waited: number[] = [];
  return { waited, deps: { sleep: async (ms: number) => void waited.push(ms) } };
}

for (const name of ["echo", "scripted"]) {
  describe(`model ${name}, faults`, () => {
    it("fails on the turns of fail_on, counted from 1, and on no other", async () => {
      const model = stages.llm(settings(name, { fail_on: [2] }));
      await reply(model, request(0, "one"));
      await assert.rejects(reply(model, request(1, "two")), { name: "ProviderError", stage: "llm" });
      await reply(model, request(2, "three"));
    });

    it("never answers on the turns of hang_on, until it is aborted", async () => {
      const model = stages.llm(settings(name, { hang_on: [1] }));
      const abort = new AbortController();
      const answer = reply(model, request(0, "one"), abort.signal);
      const first = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, "nothing yet"))]);
      assert.equal(first, "nothing yet");
      abort.abort();
      assert.deepEqual(await answer, []);
    });

    it("ends without a word when it is aborted in its delay", async () => {
      const model = stages.llm(settings(name, { delay_ms: 60_000 }));
      const abort = new AbortController();
      const answer = reply(model, request(0, "one"), abort.signal);
      abort.abort();
      assert.deepEqual(await answer, []);
    });

    it("refuses options that it does not have", () => {
      assert.throws(() => stages.llm(settings(name, { delay: 5 })), /options/);
    });
  });
}

describe("model echo", () => {
  it("gives the caller's audio back as it is, after its delay", async () => {
    const { waited, deps } = recordedWaits();
    const audio = { samples: Int16Array.of(1, -2, 3), sampleRateHz: 16_000 };
    const asked = request(0, "", { history: [{ role: "user", text: "(0.1 s of speech)", audio }] });
    const chunks = await reply(stages.llm(settings("echo", { delay_ms: 30 }), { waits: deps }), asked);
    assert.deepEqual(chunks[0], { kind: "audio", audio, text: "(0.1 s of speech)" });
    assert.deepEqual(waited, [30]);
  });

  it("gives typed text back as text", async () => {
    assert.equal(textOf(await reply(stages.llm(settings("echo", {})), request(0, "Hello there"))), "Hello there");
  });
});

describe("model scripted", () => {
  it("gives the n-th reply to the n-th turn, and the last one from then on", async () => {
    const model = stages.llm(settings("scripted", { replies: ["One.", "Two."] }));
    const said: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) said.push(textOf(await reply(model, request(turn, "?"))));
    assert.deepEqual(said, ["One.", "Two.", "Two.", "Two."]);
  });

  it("answers a turn that is asked for again with the same reply", async () => {
    const model = stages.llm(settings("scripted", { replies: ["One.", "Two."] }));
    assert.equal(textOf(await reply(model, request(0, "Hel"))), "One.");
    assert.equal(textOf(await reply(model, request(0, "Hello"))), "One.");
  });

  it("waits delay_ms, then a token's time before each word", async () => {
    const { waited, deps } = recordedWaits();
    const options = { replies: ["One two  three."], delay_ms: 120, tokens_per_s: 50 };
    const chunks = await reply(stages.llm(settings("scripted", options), { waits: deps }), request(0, "?"));
    assert.deepEqual(waited, [120, 20, 20, 20]);
    assert.deepEqual(chunks, [
      { kind: "text", text: "One " },
      { kind: "text", text: "two  " },
      { kind: "text", text: "three." },
      { kind: "usage", prompt: 1, completion: 3, cached: 0 },
    ]);
  });

  it("stops between words when it is aborted", async () => {
    const abort = new AbortController();
    let words = 0;
    const deps = { sleep: async () => void (++words === 3 && abort.abort()) };
    const options = { replies: ["a b c d e"], tokens_per_s: 10 };
    const chunks = await reply(
      stages.llm(settings("scripted", options), { waits: deps }),
      request(0, "?"),
      abort.signal,
    );
    assert.equal(textOf(chunks), "a b ");
  });

  it("runs a listed tool call first and says its reply when the result is there", async () => {
    const options = {
      replies: ["Hello.", "It is sunny."],
      tool_calls: [{ turn: 2, name: "weather", arguments: { city: "Rome" } }],
    };
    const model = stages.llm(settings("scripted", options));
    assert.equal(textOf(await reply(model, request(0, "Hi"))), "Hello.");
    const asked = request(1, "And the weather?");
    assert.deepEqual((await reply(model, asked))[0], {
      kind: "tool_call",
      id: "call_2_1",
      name: "weather",
      arguments: { city: "Rome" },
    });
    const history: HistoryItem[] = [...asked.history, { role: "tool", text: '{"sky":"clear"}' }];
    assert.equal(textOf(await reply(model, { ...asked, history })), "It is sunny.");
  });
});

describe("waiting", () => {
  it("ends at once, without an error, when it is aborted in real time", async () => {
    const abort = new AbortController();
    const wait = waitFor(realWaits, 60_000, abort.signal);
    abort.abort();
    assert.equal(await wait, false);
  });

  it("passes on a failure that is no abort", async () => {
    const deps = { sleep: () => Promise.reject(new Error("broken clock")) };
    await assert.rejects(waitFor(deps, 5, new AbortController().signal), /broken clock/);
  });
});
