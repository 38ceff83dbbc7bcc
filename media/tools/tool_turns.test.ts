import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { LanguageModel, LlmChunk, LlmRequest } from "#providers/language_model.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";
import { type Tool, ToolError, type ToolPolicy, type ToolResult } from "./tool.ts";

const config: VoiceAgentConfig = {
  stt: { provider: "scripted", options: { transcripts: ["Is there a room?"], partials: false } },
  tts: { provider: "scripted", options: { ms_per_char: 20 } },
};

const ask = (id: string, name: string, given: Record<string, unknown> = {}): LlmChunk => ({
  kind: "tool_call",
  id,
  name,
  arguments: given,
});
const text = (words: string): LlmChunk => ({ kind: "text", text: words });

/** A model that gives these chunks, request by request. */
function model(...steps: LlmChunk[][]): LanguageModel & { asked: LlmRequest[] } {
  const asked: LlmRequest[] = [];
  return {
    asked,
    async *reply(request) {
      asked.push({ ...request, history: [...request.history] });
      yield* steps[asked.length - 1] ?? [];
    },
    close() {},
  };
}

interface OpenTool extends Tool {
  /** Ends the newest run. */
  finish(result?: ToolResult): void;
  aborted: unknown[];
}

/** A tool that runs until it is told. */
function tool(name: string, over: Partial<ToolPolicy> = {}): OpenTool {
  let resolve = (_: ToolResult) => {};
  const aborted: unknown[] = [];
  return {
    spec: { name, description: "", parameters: {} },
    source: "http",
    policy: { timeoutMs: 30_000, longRunning: false, onInterrupt: "cancel", ...over },
    aborted,
    finish: (result = { text: "two rooms", isError: false }) => resolve(result),
    run: (_, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(signal.reason));
      return new Promise((found) => {
        resolve = found;
      });
    },
  };
}

const roles = (request: LlmRequest | undefined) =>
  request?.history.map(({ role, text: said, call }) => `${role} ${call ? `${call.name}: ` : ""}${said}`);

describe("a turn with tools", () => {
  it("shows the state `tool` while nothing is heard, fills the silence, and does not count as idle", async () => {
    const slow = tool("find_room");
    const llm = model([ask("c1", "find_room")], [text("There are two.")]);
    const h = new SessionHarness({ config: { ...config, advanced: { idle_timeout_s: 10 } }, llm, tools: [slow] });
    await h.run(200);
    await h.command({ type: "user_message", text: "Is there a room?" });
    await h.run(12_000);
    slow.finish();
    await h.runUntil("agent_speech_done");
    assert.equal(h.end, undefined);
    assert.deepEqual(
      h.messages("state").map(({ state }) => state),
      [
        "initializing",
        "listening",
        "thinking",
        "tool",
        "speaking",
        "tool",
        "speaking",
        "tool",
        "speaking",
        "listening",
      ],
    );
    assert.match(h.messages("transcript").at(-1)?.text ?? "", /^One moment, please. .*There are two.$/);
    assert.deepEqual(
      h.messages("tool_event").map(({ phase }) => phase),
      ["started", "completed"],
    );
    await h.command({ type: "user_message", text: "Thanks" });
    await h.run(100);
    assert.deepEqual(roles(llm.asked[2]), [
      "user Is there a room?",
      "tool find_room: two rooms",
      "agent There are two.",
      "user Thanks",
    ]);
  });

  it("that is barged into cancels what may be cancelled, and remembers what was not", async () => {
    const looks = tool("find_room");
    const books = tool("book_room", { onInterrupt: "finish" });
    const llm = model([ask("c1", "find_room"), ask("c2", "book_room")], [text("Very well.")], [text("It is done.")]);
    const h = new SessionHarness({ config, llm, tools: [looks, books] });
    await h.run(200);
    await h.command({ type: "user_message", text: "Book it" });
    await h.run(500);
    await h.speak(800);
    await h.runUntil("agent_speech_done");
    assert.deepEqual(looks.aborted, ["interrupted"]);
    assert.deepEqual(books.aborted, []);
    books.finish({ text: "booked", isError: false });
    await h.run(100);
    await h.command({ type: "user_message", text: "Well?" });
    await h.run(100);
    assert.deepEqual(
      h.messages("tool_event").map(({ name, phase }) => `${name} ${phase}`),
      ["find_room started", "book_room started", "find_room cancelled", "book_room completed"],
    );
    const memory = roles(llm.asked.at(-1)) ?? [];
    assert.ok(memory.includes('tool find_room: {"error":"cancelled"}'));
    assert.ok(memory.includes("tool book_room: booked"));
  });

  it("whose tool goes on by itself is answered at once, and again when the tool has ended and nobody speaks", async () => {
    const slow = tool("clean_room", { longRunning: true, timeoutMs: 600_000 });
    const llm = model([ask("c1", "clean_room")], [text("I have asked for it.")], [text("Your room is clean.")]);
    const h = new SessionHarness({ config: { ...config, advanced: { idle_timeout_s: 5 } }, llm, tools: [slow] });
    await h.run(200);
    await h.command({ type: "user_message", text: "Please clean it" });
    await h.runUntil("agent_speech_done");
    await h.run(20_000);
    assert.equal(h.end, undefined, "nobody is idle while a task runs");
    slow.finish({ text: "clean", isError: false });
    await h.runUntil("agent_speech_done", 2);
    assert.equal(llm.asked[2]?.inputKind, "task");
    assert.equal(llm.asked[2]?.history.at(-1)?.text, "task_1 (clean_room) completed: clean");
    assert.equal(h.messages("transcript").at(-1)?.text, "Your room is clean.");
    const events = h.messages("tool_event").map(({ phase, task_id }) => `${task_id ?? ""} ${phase}`);
    assert.deepEqual(events, [" started", "task_1 completed"]);
  });

  it("is kept in the record with what its tools were given and what they answered", async () => {
    const looks = tool("find_room", { onInterrupt: "finish" });
    const fails = { ...tool("quote"), run: async () => Promise.reject(new ToolError("no such day")) };
    const long = { ...tool("describe"), run: async () => ({ text: "x".repeat(60_000), isError: false }) };
    const given = { day: "2026-12-24" };
    const llm = model(
      [ask("c1", "find_room", given), ask("c2", "quote", { all: "y".repeat(5000) }), ask("c3", "describe")],
      [text("So far.")],
    );
    const h = new SessionHarness({ config, llm, tools: [looks, fails, long] });
    await h.run(200);
    await h.command({ type: "user_message", text: "Is there a room?" });
    await h.run(500);
    await h.command({ type: "hang_up" });
    const kept = new Map(h.records.flatMap(({ tools = [] }) => tools).map((one) => [one.tool_call_id, one]));
    const [first, second, third] = [...kept.values()];
    assert.deepEqual(first, {
      tool_call_id: "c1",
      name: "find_room",
      source: "http",
      state: "cancelled",
      arguments: given,
      result: null,
      error: '{"error":"cancelled"}',
      started_ms: 200,
      duration_ms: 500,
    });
    assert.deepEqual([second?.state, second?.arguments, second?.error], ["failed", null, "no such day"]);
    assert.deepEqual([third?.state, third?.error], ["completed", null]);
    assert.equal(Buffer.byteLength(third?.result ?? ""), 4096);
    assert.match(third?.result ?? "", /… \(cut\)$/);
  });

  it("runs what asks for a yes when the caller's last turn was one, and not on a yes of before", async () => {
    const books = tool("book_room", { needsYes: true, onInterrupt: "finish" });
    const llm = model(
      [ask("c1", "book_room")],
      [text("Shall I book it?")],
      [ask("c2", "book_room")],
      [text("It is booked.")],
      [ask("c3", "book_room", { again: true })],
      [text("Shall I book another?")],
    );
    const h = new SessionHarness({ config, llm, tools: [books] });
    await h.run(200);
    for (const said of ["A room, please", "Yes, go ahead", "Thanks"]) {
      const spoken = h.messages("agent_speech_done").length;
      await h.command({ type: "user_message", text: said });
      await h.run(100);
      books.finish({ text: "booked", isError: false });
      await h.runUntil("agent_speech_done", spoken + 1);
    }
    assert.deepEqual(
      h.messages("tool_event").map(({ phase }) => phase),
      ["started", "failed", "started", "completed", "started", "failed"],
    );
    assert.match(h.messages("tool_event")[1]?.error ?? "", /^not_confirmed: .*ask for a yes/);
  });

  it("shows what is sensitive to the model alone", async () => {
    const card = "4111 1111 1111 1111";
    const pays = tool("pay", { isSensitive: true });
    const refuses = {
      ...tool("check", { isSensitive: true }),
      run: async () => Promise.reject(new ToolError(`No such card: ${card}`)),
    };
    const llm = model([ask("c1", "pay", { card }), ask("c2", "check", { card })], [text("It is paid.")]);
    const h = new SessionHarness({ config, llm, tools: [pays, refuses] });
    await h.run(200);
    await h.command({ type: "user_message", text: "I would like to pay" });
    pays.finish({ text: `paid with ${card}`, isError: false });
    await h.runUntil("agent_speech_done");
    assert.ok(roles(llm.asked[1])?.includes(`tool pay: paid with ${card}`));
    await h.command({ type: "hang_up" });
    assert.ok(!JSON.stringify([h.allMessages(), h.records]).includes("4111"));
    const kept = new Map(h.records.flatMap(({ tools = [] }) => tools).map((one) => [one.name, one]));
    const ofCard = (name: string) => [kept.get(name)?.state, kept.get(name)?.arguments, kept.get(name)?.result];
    assert.deepEqual(ofCard("pay"), ["completed", null, null]);
    assert.deepEqual([...ofCard("check"), kept.get("check")?.error], ["failed", null, null, "The tool failed"]);
  });

  it("ends its tools with the call", async () => {
    const slow = tool("find_room", { onInterrupt: "finish" });
    const h = new SessionHarness({ config, llm: model([ask("c1", "find_room")]), tools: [slow] });
    await h.run(200);
    await h.command({ type: "user_message", text: "Is there a room?" });
    await h.run(200);
    await h.command({ type: "hang_up" });
    assert.deepEqual(slow.aborted, ["call_ended"]);
  });
});
