import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { type ModelSettings, modelStages } from "#contracts/voice_agent.ts";
import { builtInProviders, callProviderNames, defaultProviders } from "./catalogue.ts";
import { rules } from "./rules/provider.ts";
import { loadStages, openStage } from "./stages.ts";

const settings = (provider: string, options: Record<string, unknown> = {}): ModelSettings => ({
  provider,
  language: "en",
  options,
});

describe("loaded stages", async () => {
  const stages = await loadStages();
  after(() => stages.shutDown());

  it("open every provider that a call may name, the default included, and no other", () => {
    for (const stage of modelStages) {
      for (const provider of callProviderNames[stage]) stages[stage](settings(provider)).close();
      assert.ok(builtInProviders(stage).some(({ name }) => name === defaultProviders[stage]));
      for (const other of ["openai", "toString"]) {
        assert.throws(
          () => stages[stage](settings(other)),
          new RegExp(`expected one of ${callProviderNames[stage][0]}`),
        );
      }
    }
  });

  it("refuse options that do not fit, by their path", () => {
    assert.throws(() => stages.stt(settings("scripted", { transcripts: 1 })), /stt\.options\.transcripts/);
    assert.throws(() => stages.llm(settings("rules", { rules: [{ intent: "a", patterns: ["("], say: "" }] })), /RE2/);
  });

  it("fill in defaults without touching what they were given", async () => {
    const given = { replies: ["Yes."] };
    const model = stages.llm(settings("scripted", given));
    const request = {
      instructions: "",
      history: [{ role: "user" as const, text: "?" }],
      turnIndex: 0,
      inputKind: "text" as const,
      unrecognized: false,
      tools: [],
    };
    for await (const _ of model.reply(request, new AbortController().signal));
    assert.deepEqual(given, { replies: ["Yes."] });
  });

  it("pass their clock on", async () => {
    const waited: number[] = [];
    const stt = stages.stt(settings("echo", { delay_ms: 5 }), { sleep: async (ms) => void waited.push(ms) });
    await stt.finish({ index: 0, samples: new Int16Array(1), sampleRateHz: 8000 }, new AbortController().signal);
    assert.deepEqual(waited, [5]);
  });

  it("warm up, more than once", async () => {
    await Promise.all([stages.warmUp(), stages.warmUp()]);
  });
});

describe("a single stage", () => {
  it("is no stage that its provider does not have", async () => {
    await assert.rejects(openStage("tts", rules, settings("rules")), /no such stage/);
  });
});
