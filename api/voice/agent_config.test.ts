import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { callConfigFor, fillVariables, mergeOverrides, overrideProblems } from "./agent_config.ts";

describe("overrides", () => {
  const config: VoiceAgentConfig = {
    instructions: "Be kind",
    llm: { provider: "scripted", temperature: 1, options: { replies: ["a"], delay_ms: 5 } },
    advanced: { eos_silence_ms: 300, idle_timeout_s: 30 },
  };

  it("replace field by field within a section, and lists and options as wholes", () => {
    const merged = mergeOverrides(config, {
      llm: { temperature: 0, options: { replies: ["b"] } },
      advanced: { idle_timeout_s: 0 },
      stt: { provider: "echo" },
    });
    assert.deepEqual(merged, {
      instructions: "Be kind",
      stt: { provider: "echo" },
      llm: { provider: "scripted", temperature: 0, options: { replies: ["b"] } },
      advanced: { eos_silence_ms: 300, idle_timeout_s: 0 },
    });
  });

  it("keep nothing of another provider's settings", () => {
    assert.deepEqual(mergeOverrides(config, { llm: { provider: "echo" } }).llm, { provider: "echo" });
  });

  it("know the provider that settings mean without naming it", () => {
    const rules = { rules: [] };
    const merged = mergeOverrides({ llm: { options: rules } }, { llm: { provider: "rules", temperature: 1 } });
    assert.deepEqual(merged.llm, { provider: "rules", temperature: 1, options: rules });
  });

  it("never change the agent's own configuration", () => {
    const before = structuredClone(config);
    mergeOverrides(config, { llm: { temperature: 2 }, advanced: { eos_silence_ms: 100 } });
    assert.deepEqual(config, before);
  });

  it("are judged together with what they are laid over", () => {
    assert.equal(overrideProblems(config, { llm: { options: { replies: ["b"] } } }), undefined);
    assert.ok(overrideProblems(config, { llm: { options: { rules: [] } } }));
    assert.equal(overrideProblems(config, { llm: { provider: "rules", options: { rules: [] } } }), undefined);
  });

  it("cannot reach other machines, wherever the field hides", () => {
    for (const overrides of [
      { llm: { options: { base_url: "https://x.example" } } },
      { tools: [{ name: "a", url: "https://x.example", headers: [] }] },
      { transfer: { phone_number: "sip:a@x.example" } },
      { transfer: { destinations: [{ label: "a", phone_number: "sips:a@x.example" }] } },
    ]) {
      assert.ok(overrideProblems({}, overrides), JSON.stringify(overrides));
    }
    assert.equal(overrideProblems({}, { transfer: { phone_number: "+4930123456" } }), undefined);
  });
});

describe("variables", () => {
  it("fill in names, spaces inside the braces or not, and leave no braces of names to be heard", () => {
    const text = "{{a}} {{ b }} {{c}} {{unknown}} {{not a name}} {{__proto__}}{{constructor}}";
    assert.equal(fillVariables(text, { a: "x", b: 2, c: false }), "x 2 false  {{not a name}} ");
  });

  it("are not filled in again, whatever their values hold", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        assert.equal(fillVariables("{{a}}-{{b}}", { a, b }), `${a}-${b}`);
      }),
    );
  });

  it("tell an agent its name, in its model's instructions and in its texts", () => {
    const config = { name: "Ada", instructions: "Be kind", welcome_message: "This is {{agent_name}}." };
    const call = callConfigFor({ ...config, llm: { provider: "openai" } }, {}, {});
    assert.deepEqual([call.instructions, call.welcome_message], ["Your name is Ada.\nBe kind", "This is Ada."]);
    assert.equal(callConfigFor(config, {}, { agent_name: "Bo" }).welcome_message, "This is Bo.");
    assert.equal(callConfigFor({ name: "Ada", llm: { provider: "openai" } }, {}, {}).instructions, "Your name is Ada.");
    assert.deepEqual(callConfigFor({ name: "Ada" }, {}, {}).ignored_settings, ["name"]);
  });

  it("leave what is set in vain to be told in the call", () => {
    const config = { instructions: "Be kind", llm: { provider: "rules", model: "gpt-5" } };
    const call = callConfigFor(config, { tts: { language: "fr" } }, {});
    assert.deepEqual(call.ignored_settings, ["instructions", "llm.model", "tts.language"]);
    assert.equal(call.ignores_context, true);
  });

  it("reach instructions and the welcome message of the call's configuration", () => {
    const config = { instructions: "I {{x}}", welcome_message: "W {{x}}" };
    const call = callConfigFor(config, { welcome_message: "O {{x}}" }, { x: "1" });
    assert.deepEqual([call.instructions, call.welcome_message], ["I 1", "O 1"]);
    assert.deepEqual([call.llm.provider, call.tts.provider, call.stt], ["rules", "flite", undefined]);
  });
});
