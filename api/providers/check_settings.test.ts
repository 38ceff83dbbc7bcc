import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { type CheckedSettings, checkModelSettings } from "./check_settings.ts";
import { rulePatternsMax } from "./rules/rule_checks.ts";

const rule = (more: Record<string, unknown> = {}) => ({ intent: "a", patterns: ["a"], say: "b", ...more });
const rules = (...list: unknown[]): CheckedSettings => ({ provider: "rules", options: { rules: list } });
const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

describe("model settings", () => {
  const fine: [ModelStage, CheckedSettings][] = [
    ["llm", {}],
    ["tts", {}],
    ["stt", { provider: "echo", options: { delay_ms: 60_000, fail_on: [1], hang_on: [2, 3] } }],
    ["stt", { provider: "scripted", options: { transcripts: ["Hello"], delay_ms: 5, partials: false } }],
    [
      "llm",
      { provider: "scripted", options: { replies: [], tokens_per_s: 0.5, tool_calls: [{ turn: 1, name: "t" }] } },
    ],
    ["tts", { provider: "scripted", options: { ms_per_char: 0, tone_hz: 7000 } }],
    ["tts", { provider: "flite", voice: "awb", options: { fail_on: [] } }],
    ["llm", rules(rule({ tool: "end_call", slots: [{ name: "n", prompt: "?", pattern: "(?P<n>\\d+)" }] }))],
    ["llm", { model: "any", options: { fallback: "" } }],
    ["llm", { provider: "anthropic", model: "m", connection_id: "x", base_url: "https://a.example" }],
    ["stt", { provider: "openai", connection_id: "x" }],
  ];
  for (const [stage, settings] of fine) {
    it(`accepts ${stage} ${JSON.stringify(settings)}`, () => assert.deepEqual(checkModelSettings(stage, settings), []));
  }

  const wrong: [ModelStage, CheckedSettings, string[]][] = [
    ["stt", {}, ["stt.provider"]],
    ["stt", { provider: "rules" }, ["stt.provider"]],
    ["stt", { provider: "toString" }, ["stt.provider"]],
    ["llm", { provider: "rules", connection_id: "x" }, ["llm.connection_id"]],
    ["llm", { provider: "openai", model: " " }, ["llm.connection_id", "llm.model"]],
    ["llm", { provider: "anthropic", connection_id: "x", temperature: 1 }, ["llm.model", "llm.temperature"]],
    ["tts", { provider: "cartesia", connection_id: "x" }, ["tts.voice"]],
    ["stt", { provider: "local", base_url: "http://a.example" }, ["stt.base_url"]],
    ["tts", { base_url: "http://127.0.0.1" }, ["tts.base_url"]],
    ["tts", { voice: "kal" }, ["tts.voice"]],
    ["tts", { provider: "flite", options: { delay_ms: 1 } }, ["tts.options.delay_ms"]],
    [
      "llm",
      { provider: "scripted", options: { replies: "x", delay_ms: -1, more: 1 } },
      ["more", "replies", "delay_ms"].map((name) => `llm.options.${name}`),
    ],
    ["llm", { provider: "scripted", options: { fail_on: [0] } }, ["llm.options.fail_on.0"]],
    ["llm", { provider: "scripted", options: { tool_calls: [{ turn: 1 }] } }, ["llm.options.tool_calls.0.name"]],
    ["llm", { provider: "echo", options: { delay_ms: 60_001 } }, ["llm.options.delay_ms"]],
    ["stt", { provider: "scripted", options: { transcripts: [1] } }, ["stt.options.transcripts.0"]],
    ["tts", { provider: "scripted", options: { tone_hz: 7001 } }, ["tts.options.tone_hz"]],
    ["llm", rules({}), ["intent", "patterns", "say"].map((name) => `llm.options.rules.0.${name}`)],
    ["llm", rules(rule({ patterns: [] })), ["llm.options.rules.0.patterns"]],
    ["llm", rules(rule({ patterns: ["a".repeat(501)] })), ["llm.options.rules.0.patterns.0"]],
    ["llm", rules(rule(), rule({ patterns: ["a", "["] })), ["llm.options.rules.1.patterns.1"]],
    ["llm", rules(rule({ patterns: ["(?=a)b"] })), ["llm.options.rules.0.patterns.0"]],
    ["llm", rules(rule({ patterns: [".{1,1000}.{1,1000}"] })), ["llm.options.rules.0.patterns.0"]],
    [
      "llm",
      rules(rule({ slots: [{ name: "a", prompt: "?", pattern: "(" }] })),
      ["llm.options.rules.0.slots.0.pattern"],
    ],
    ["llm", rules(rule({ slots: many(2, { name: "a", prompt: "?" }) })), ["llm.options.rules.0.slots.1.name"]],
    ["llm", rules(rule({ slots: [{ name: "a b", prompt: "?" }] })), ["llm.options.rules.0.slots.0.name"]],
    ["llm", rules(...many(rulePatternsMax / 50 + 1, rule({ patterns: many(50, "a") }))), ["llm.options.rules"]],
    ["llm", rules(...many(100, rule({ patterns: ["a{300}"] }))), ["llm.options.rules"]],
    ["llm", rules(...many(201, rule())), ["llm.options.rules"]],
  ];
  for (const [stage, settings, paths] of wrong) {
    it(`refuses ${stage} ${JSON.stringify(settings).slice(0, 80)}`, () => {
      const problems = checkModelSettings(stage, settings);
      assert.deepEqual(problems.map(({ path }) => path).sort(), [...paths].sort());
      for (const { message } of problems) assert.ok(message.length > 0 && message.length < 300);
    });
  }

  it("stops at the first pattern that costs too much", () => {
    const problems = checkModelSettings(
      "llm",
      rules(...many(10, rule({ patterns: many(50, ".{1,1000}".repeat(50)) }))),
    );
    assert.deepEqual(
      problems.map(({ path }) => path),
      ["llm.options.rules.0.patterns.0"],
    );
  });

  it("returns a bounded number of problems", () => {
    assert.equal(checkModelSettings("llm", rules(rule({ patterns: many(50, "(") }))).length, 20);
    const settings = { provider: "scripted", options: { replies: many(900, 1) } };
    assert.equal(checkModelSettings("llm", settings).length, 20);
  });
});
