import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LanguageModel, LlmChunk, LlmRequest, TextToSpeech } from "#providers/provider.ts";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import type { ToolDesk } from "../tools/call_tools.ts";
import type { ToolResult } from "../tools/tool.ts";
import { Answer, type AnswerEvent, type AnswerGate } from "./answer.ts";
import { Fillers } from "./fillers.ts";

const openGate: AnswerGate = { isSpoken: true, mayGoOn: async () => {}, mayPush: async () => {}, isQuiet: () => true };
const limits = { sttMs: 5000, llmMs: 6000, ttsMs: 5000 };
const call = (id: string, name = "look_up"): LlmChunk => ({ kind: "tool_call", id, name, arguments: {} });
const usage: LlmChunk = { kind: "usage", prompt: 1, completion: 1, cached: 0 };
const fine: ToolResult = { text: "sunny", isError: false };
const never = () => ({ next: () => new Promise<never>(() => {}) });
const text = (words: string): LlmChunk => ({ kind: "text", text: words });

/** A model that gives these chunks, step by step, and remembers what it was asked. */
function model(...steps: LlmChunk[][]): LanguageModel & { asked: LlmRequest[] } {
  const asked: LlmRequest[] = [];
  return {
    asked,
    async *reply(request) {
      asked.push(request);
      yield* steps[asked.length - 1] ?? [];
    },
    close() {},
  };
}

/** A voice of one piece a clause; fails at the clauses of `failing`. */
function voice(failing: readonly string[] = []): TextToSpeech {
  return {
    async *speak(clause) {
      if (failing.includes(clause)) throw new Error("no voice");
      yield { samples: new Int16Array(clause.length), sampleRateHz: 16_000 };
    },
    close() {},
  };
}

function desk(run: ToolDesk["run"]): ToolDesk {
  return { specs: [{ name: "look_up", description: "", parameters: {} }], run };
}

function answerOf(says: string | LanguageModel, { tools = desk(async () => fine), tts = voice(), stepsMax = 3 } = {}) {
  const clock = new VirtualClock();
  const llm = typeof says === "string" ? model() : says;
  const request = { instructions: "", turnIndex: 0, inputKind: "text" as const, unrecognized: false };
  const history = [{ role: "user" as const, text: "?" }];
  const plan = {
    turnId: "turn_1",
    source: "model" as const,
    says: typeof says === "string" ? says : { request, history, toolStepsMax: stepsMax },
    index: 0,
  };
  const answer = new Answer(plan, { llm, tts, tools, fillers: new Fillers("en"), limits, scheduler: clock });
  const events: AnswerEvent[] = [];
  const done = (async () => {
    for await (const event of answer.events(openGate)) events.push(event);
  })();
  return { answer, events, done, clock, types: () => events.map(({ type }) => type) };
}

describe("an answer", () => {
  it("tells of its text and of each clause as it is spoken", async () => {
    const { done, events } = answerOf("Good evening. How are you?");
    await done;
    assert.deepEqual(
      events.flatMap((event) => ("text" in event ? [`${event.type} ${event.text.trim()}`] : [event.type])).sort(),
      [
        "audio",
        "audio",
        "clause Good evening.",
        "clause How are you?",
        "clause_done",
        "clause_done",
        "text Good evening.",
        "text How are you?",
      ],
    );
  });

  it("waits for a tool without holding up what is being said, fills the silence, and hands its result to the model", async () => {
    let finish: (result: ToolResult) => void = () => {};
    const llm = model([text("One moment. "), call("c1")], [text("It is sunny."), usage]);
    const slow = desk(() => new Promise((resolve) => (finish = resolve)));
    const { done, types, events, clock } = answerOf(llm, { tools: slow });
    await clock.advance(1000);
    assert.deepEqual(types().sort(), ["audio", "clause", "clause_done", "text", "tools"]);
    await clock.advance(1500);
    assert.deepEqual(
      events.flatMap((event) => (event.type === "text" && event.isFiller ? [event.text.trim()] : [])),
      ["One moment, please."],
    );
    assert.equal(llm.asked.length, 1);
    finish(fine);
    await done;
    assert.deepEqual(
      events.flatMap((event) => (event.type === "tools" ? [event.running] : [])),
      [true, false],
    );
    assert.deepEqual(llm.asked[1]?.history.at(-2), { role: "agent", text: "One moment." });
    assert.deepEqual(llm.asked[1]?.history.at(-1), {
      role: "tool",
      text: "sunny",
      call: { id: "c1", name: "look_up", arguments: {} },
    });
    assert.ok(events.some((event) => event.type === "text" && event.text === "It is sunny."));
    assert.ok(types().includes("usage"));
  });

  it("aborts the tool that runs when it is stopped, and tells nothing more", async () => {
    let aborted = false;
    const stuck = desk(
      (_call, signal) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            aborted = true;
            resolve(fine);
          }),
        ),
    );
    const llm = model([call("c1")], [text("Too late.")]);
    const { answer, done, types, clock } = answerOf(llm, { tools: stuck });
    await clock.advance(100);
    answer.stop();
    await done;
    await clock.advance(100);
    assert.equal(aborted, true);
    assert.deepEqual(types(), ["tools"]);
    assert.equal(llm.asked.length, 1);
  });

  it("ends with its farewell where a tool leaves", async () => {
    const leaving = desk(async () => ({ text: "", isError: false, leaves: true, farewell: "Goodbye." }));
    const llm = model([call("c1", "end_call")], [text("Never asked for.")]);
    const { done, events } = answerOf(llm, { tools: leaving });
    await done;
    assert.deepEqual(
      events.flatMap((event) => (event.type === "text" ? [event.text] : [])),
      ["Goodbye."],
    );
    assert.equal(llm.asked.length, 1);
  });

  it("asks once more without tools after the steps that it may take, so that something is said", async () => {
    const llm = model([call("c1")], [text("That is all."), call("c2")], [call("c3")]);
    const { done, events } = answerOf(llm, { stepsMax: 1 });
    await done;
    assert.deepEqual(
      llm.asked.map(({ toolChoice }) => toolChoice),
      ["auto", "none"],
    );
    assert.ok(events.some((event) => event.type === "text" && event.text === "That is all."));
    assert.ok(events.some((event) => event.type === "too_many_steps"));
  });

  it("runs the tools of a step side by side and answers them in their order", async () => {
    let running = 0;
    let most = 0;
    const both = desk(async (asked) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => setImmediate(resolve));
      running -= 1;
      return { text: asked.id, isError: false };
    });
    const llm = model([call("c1"), call("c2")], [text("Both.")]);
    const { done } = answerOf(llm, { tools: both });
    await done;
    assert.equal(most, 2);
    assert.deepEqual(
      llm.asked[1]?.history.slice(-2).map(({ text: result }) => result),
      ["c1", "c2"],
    );
  });

  it("names the stage that failed, and never throws", async () => {
    const broken: LanguageModel = {
      // biome-ignore lint/correctness/useYield: it fails before its first chunk
      async *reply() {
        throw new Error("away");
      },
      close() {},
    };
    const llm = answerOf(broken);
    await llm.done;
    assert.deepEqual(
      llm.events.map((event) => event.type === "failed" && event.stage),
      ["llm"],
    );
    const tts = answerOf("Good evening.", { tts: voice(["Good evening."]) });
    await tts.done;
    assert.deepEqual(
      tts.events.flatMap((event) => (event.type === "failed" ? [event.stage] : [])),
      ["tts"],
    );
  });

  it("leaves out a clause that cannot be spoken, and says what follows", async () => {
    const { done, events } = answerOf("One. Two. Three.", { tts: voice(["Two. "]) });
    await done;
    const told = events.flatMap((event) =>
      event.type === "clause"
        ? [event.text.trim()]
        : event.type === "audio" || event.type === "failed"
          ? [event.type]
          : [],
    );
    assert.deepEqual(told, ["One.", "audio", "Two.", "failed", "Three.", "audio"]);
  });

  it("asks for no more speech after two clauses in a row without", async () => {
    const asked: string[] = [];
    const away: TextToSpeech = {
      // biome-ignore lint/correctness/useYield: it fails before its first piece
      async *speak(text) {
        asked.push(text.trim());
        throw new Error("no voice");
      },
      close() {},
    };
    const { done, events } = answerOf("One. Two. Three. Four.", { tts: away });
    await done;
    assert.deepEqual(asked, ["One.", "Two."]);
    assert.equal(events.filter(({ type }) => type === "text").length, 4);
  });

  it("gives up on a model that says nothing", async () => {
    const silent: LanguageModel = { reply: () => ({ [Symbol.asyncIterator]: never }), close() {} };
    const { done, events, clock } = answerOf(silent);
    await clock.advance(20_000);
    await done;
    const failed = events.find(({ type }) => type === "failed");
    assert.ok(failed?.type === "failed" && /No answer within/.test(String(failed.cause)));
  });
});
