import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { llmProviders, type ModelSettings, sttProviders, ttsProviders } from "#contracts/voice_agent.ts";
import {
  closeProviders,
  createLlm,
  createStt,
  createTts,
  llmFactories,
  sttFactories,
  ttsFactories,
  warmUp,
} from "./registry.ts";

const settings = (provider: string, options: Record<string, unknown> = {}): ModelSettings => ({
  provider,
  language: "en",
  options,
});

describe("registry of providers", () => {
  after(closeProviders);

  it("builds the providers of the configuration's enums, and no other", () => {
    assert.deepEqual([...sttFactories.keys()].sort(), [...sttProviders].sort());
    assert.deepEqual([...llmFactories.keys()].sort(), [...llmProviders].sort());
    assert.deepEqual([...ttsFactories.keys()].sort(), [...ttsProviders].sort());
    for (const provider of sttProviders) createStt(settings(provider)).close();
    for (const provider of llmProviders) createLlm(settings(provider)).close();
    for (const provider of ttsProviders) createTts(settings(provider)).close();
  });

  it("refuses a provider that is not built, and options that do not fit", () => {
    assert.throws(() => createTts(settings("toString")), /expected one of flite/);
    assert.throws(() => createStt(settings("scripted", { transcripts: 1 })), /transcripts/);
    assert.deepEqual(
      sttFactories
        .get("scripted")
        ?.check(settings("scripted", { transcripts: 1 }))
        .map(({ path }) => path),
      ["stt.options.transcripts"],
    );
  });

  it("passes its clock on", async () => {
    const waited: number[] = [];
    const deps = { sleep: async (ms: number) => void waited.push(ms) };
    const stt = createStt(settings("echo", { delay_ms: 5 }), deps);
    await stt.finish({ index: 0, samples: new Int16Array(1), sampleRateHz: 8000 }, new AbortController().signal);
    assert.deepEqual(waited, [5]);
  });

  it("warms up, more than once", async () => {
    await Promise.all([warmUp(), warmUp()]);
  });
});
