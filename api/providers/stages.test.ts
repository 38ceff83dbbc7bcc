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

  it("open every built-in provider, the default included, and none that is not there", () => {
    for (const stage of modelStages) {
      for (const { name } of builtInProviders(stage)) stages[stage](settings(name)).close();
      assert.ok(builtInProviders(stage).some(({ name }) => name === defaultProviders[stage]));
      assert.throws(
        () => stages[stage](settings("toString")),
        new RegExp(`expected one of ${callProviderNames[stage][0]}`),
      );
    }
  });

  it("load a vendor for the first call that names it, and open it with the key of its own connection alone", async () => {
    const llm = { ...settings("openai"), connection_id: "a" };
    const credential = (provider: string) => ({ credentials: { a: { provider, secret: "k" } } });
    assert.throws(() => stages.llm(llm, credential("openai")), /not loaded/);
    await stages.load({ llm });
    assert.equal(stages.load({ llm, tts: settings("flite") }), undefined);
    stages.llm(llm, credential("openai")).close();
    for (const deps of [{ credentials: {} }, credential("bearer")]) {
      assert.throws(() => stages.llm(llm, deps), /expected its connection/);
      assert.deepEqual(
        stages.unreachable({ llm, tts: settings("flite") }, deps.credentials).map(({ path }) => path),
        ["llm.connection_id"],
      );
    }
    assert.deepEqual(stages.unreachable({ llm }, credential("openai").credentials), []);
  });

  it("reach a server of the operator's own only where the environment names one", async () => {
    const stt = settings("local");
    await stages.load({ stt });
    assert.deepEqual(
      stages.unreachable({ stt }).map(({ path }) => path),
      ["stt.provider"],
    );
    assert.throws(() => stages.stt(stt), /expected its connection/);
    const withServer = await loadStages({ ownServers: { stt: { url: "http://127.0.0.1:9/v1" } } });
    await withServer.load({ stt });
    assert.deepEqual(withServer.unreachable({ stt }), []);
    withServer.stt(stt).close();
    await withServer.shutDown();
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
    const stt = stages.stt(settings("echo", { delay_ms: 5 }), { waits: { sleep: async (ms) => void waited.push(ms) } });
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
