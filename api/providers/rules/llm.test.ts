import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HistoryItem, LlmChunk, LlmRequest, ToolSpec } from "../provider.ts";
import { loadStages } from "../stages.ts";
import * as answers from "./rules_answer.ts";

const stages = await loadStages();

const book = {
  intent: "book_table",
  patterns: ["\\b(book|reserve) a table( for (?P<guests>\\d+|two|four))?( at (?P<time>\\d{1,2}( ?[ap]m)?))?"],
  slots: [
    { name: "guests", prompt: "For how many?", pattern: "\\d+|two|four" },
    { name: "time", prompt: "At what time, for {{guests}}?", pattern: "\\b(\\d{1,2}( ?[ap]m)?)\\b" },
    { name: "name", prompt: "Under what name?" },
  ],
  say: "A table for {{guests}} at {{time}} for {{name}} is booked. {{result.note}}",
};
const breakfast = {
  intent: "breakfast",
  patterns: ["\\bbreakfast\\b", "frühstück", "^3$"],
  say: "Breakfast is from seven to ten.",
};
const greet = { intent: "name", patterns: ["my name is (?P<who>\\pL+)"], say: "Welcome, {{ who }}." };
const bye = { intent: "bye", patterns: ["\\bgoodbye\\b"], say: "Goodbye!", tool: "end_call" };
const fallback = "Sorry, I don't know about: {{text}}.";

const tool = (name: string): ToolSpec => ({ name, description: "", parameters: { type: "object" } });

/** A conversation with one model: each call is a turn. */
function conversation(rules: unknown[], tools: ToolSpec[] = []) {
  const options = rules.length > 0 ? { rules, fallback } : {};
  const model = stages.llm({ provider: "rules", language: "en", options });
  const history: HistoryItem[] = [];
  let turnIndex = -1;
  async function ask(item: HistoryItem, more: Partial<LlmRequest> = {}): Promise<LlmChunk[]> {
    if (item.role === "user" && more.turnIndex === undefined) turnIndex += 1;
    history.push(item);
    const request = { instructions: "", history, turnIndex, inputKind: "text", unrecognized: false, tools, ...more };
    const chunks: LlmChunk[] = [];
    for await (const chunk of model.reply(request as LlmRequest, new AbortController().signal)) chunks.push(chunk);
    return chunks;
  }
  return {
    ask,
    says: async (text: string, more: Partial<LlmRequest> = {}) => textOf(await ask({ role: "user", text }, more)),
  };
}

const textOf = (chunks: LlmChunk[]) => chunks.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("");
const toolCallOf = (chunks: LlmChunk[]) => chunks.find((chunk) => chunk.kind === "tool_call");

describe("model rules, one turn", () => {
  const table: [heard: string, said: string][] = [
    ["When is breakfast?", breakfast.say],
    ["WHEN IS BREAKFAST", breakfast.say],
    ["wann gibt es FRÜHSTÜCK?", breakfast.say],
    ["wann gibt es fru\u0308hstu\u0308ck?", breakfast.say],
    ["breakfasts", "Sorry, I don't know about: breakfasts."],
    ["Hi, my  name\tis Zoë", "Welcome, Zoë."],
    ["goodbye", "Goodbye!"],
    ["", "Sorry, I don't know about:."],
  ];
  for (const [heard, said] of table) {
    it(`answers ${JSON.stringify(heard)}`, async () => {
      assert.equal(await conversation([breakfast, greet, bye]).says(heard), said);
    });
  }

  it("takes the first rule that fits", async () => {
    const both = { intent: "b", patterns: ["breakfast"], say: "Second." };
    assert.equal(await conversation([breakfast, both]).says("breakfast"), breakfast.say);
    assert.equal(await conversation([both, breakfast]).says("breakfast"), "Second.");
  });

  it("streams its answer word by word and counts them", async () => {
    const chunks = await conversation([breakfast]).ask({ role: "user", text: "breakfast please" });
    assert.deepEqual(chunks.slice(0, 2), [
      { kind: "text", text: "Breakfast " },
      { kind: "text", text: "is " },
    ]);
    assert.deepEqual(chunks.at(-1), { kind: "usage", prompt: 2, completion: 6, cached: 0 });
  });

  it("matches keys, and says which ones it has no answer to", async () => {
    const talk = conversation([breakfast]);
    assert.equal(await talk.says("3", { inputKind: "dtmf" }), breakfast.say);
    assert.equal(await talk.says("42", { inputKind: "dtmf" }), "You pressed 4 2. Sorry, I don't know about: 42.");
  });

  it("says that no recognizer is set and how to set one, shorter from the second time on", async () => {
    const talk = conversation([breakfast]);
    const first = await talk.says("", { inputKind: "speech", unrecognized: true });
    assert.match(first, /no speech recognizer is set/);
    assert.match(first, /stt\.provider/);
    const second = await talk.says("", { inputKind: "speech", unrecognized: true });
    assert.equal(second, answers.noRecognizerShortText);
    assert.equal(await talk.says("breakfast"), breakfast.say);
  });
});

describe("model rules, end of call", () => {
  it("says goodbye first and then calls end_call, where that is offered", async () => {
    const talk = conversation([bye], [tool("end_call")]);
    const chunks = await talk.ask({ role: "user", text: "goodbye" });
    assert.deepEqual(
      chunks.map((chunk) => chunk.kind),
      ["text", "tool_call", "usage"],
    );
    assert.equal(textOf(await talk.ask({ role: "tool", text: "ok" })), "");
  });

  it("only says goodbye where it is not", async () => {
    assert.equal(toolCallOf(await conversation([bye]).ask({ role: "user", text: "goodbye" })), undefined);
  });
});

describe("model rules, slots", () => {
  it("asks for each missing slot in turn", async () => {
    const talk = conversation([book, breakfast]);
    assert.equal(await talk.says("I'd like to book a table"), "For how many?");
    assert.equal(await talk.says("we are four"), "At what time, for four?");
    assert.equal(await talk.says("at 8 pm please"), "Under what name?");
    assert.equal(await talk.says("Anna Petrova"), "A table for four at 8 pm for Anna Petrova is booked.");
    assert.equal(await talk.says("Anna Petrova"), "Sorry, I don't know about: Anna Petrova.");
  });

  it("does not ask for what the first sentence said", async () => {
    const talk = conversation([book]);
    assert.equal(await talk.says("Book a table for two at 7pm"), "Under what name?");
    assert.match(await talk.says("Bo"), /for two at 7pm for Bo/);
  });

  it("answers a question in between and comes back to the slot", async () => {
    const talk = conversation([book, breakfast]);
    await talk.says("book a table");
    assert.equal(await talk.says("when is breakfast?"), `${breakfast.say} For how many?`);
    assert.equal(await talk.says("2"), "At what time, for 2?");
  });

  it("asks again, and gives up after three answers that do not fit", async () => {
    const talk = conversation([book]);
    await talk.says("book a table");
    assert.equal(await talk.says("hm"), `${answers.notUnderstoodText} For how many?`);
    assert.equal(await talk.says("hmm"), `${answers.notUnderstoodText} For how many?`);
    assert.equal(await talk.says("hmmm"), "Sorry, I don't know about: hmmm.");
    assert.equal(await talk.says("2"), "Sorry, I don't know about: 2.");
  });

  it("leaves the matter when the caller says so", async () => {
    const talk = conversation([book]);
    await talk.says("book a table");
    assert.equal(await talk.says("No, never mind."), answers.cancelledText);
    assert.equal(await talk.says("2"), "Sorry, I don't know about: 2.");
  });

  it("takes keys for a slot", async () => {
    const talk = conversation([book]);
    await talk.says("book a table");
    assert.equal(await talk.says("4", { inputKind: "dtmf" }), "At what time, for 4?");
  });

  it("starts over from the state before when a turn is asked for again", async () => {
    const talk = conversation([book]);
    await talk.says("book a table");
    assert.equal(await talk.says("2"), "At what time, for 2?");
    assert.equal(await talk.says("20", { turnIndex: 1 }), "At what time, for 20?");
    assert.equal(await talk.says("9pm"), "Under what name?");
  });

  it("keeps conversations apart", async () => {
    const [one, other] = [conversation([book]), conversation([book])];
    await one.says("book a table");
    assert.equal(await other.says("2"), "Sorry, I don't know about: 2.");
  });
});

describe("model rules, tools", () => {
  const booking = { ...book, tool: "book_table" };

  it("calls the tool with the slots and answers from the template and the result", async () => {
    const talk = conversation([booking], [tool("book_table")]);
    await talk.says("book a table for two at 7pm");
    const chunks = await talk.ask({ role: "user", text: "Bo" });
    const args = { guests: "two", time: "7pm", name: "Bo" };
    assert.deepEqual(toolCallOf(chunks), {
      kind: "tool_call",
      id: "call_2_book_table",
      name: "book_table",
      arguments: args,
    });
    assert.equal(textOf(chunks), "");
    assert.equal(
      textOf(await talk.ask({ role: "tool", text: '{"note":"By the window."}' })),
      "A table for two at 7pm for Bo is booked. By the window.",
    );
  });

  it("claims nothing when the tool failed or is not there", async () => {
    const failing = conversation([booking], [tool("book_table")]);
    await failing.says("book a table for two at 7pm");
    await failing.says("Bo");
    assert.equal(textOf(await failing.ask({ role: "tool", text: "503", isError: true })), answers.toolFailedText);

    const without = conversation([booking]);
    await without.says("book a table for two at 7pm");
    assert.equal(await without.says("Bo"), answers.toolMissingText);
  });
});

describe("model rules, without rules of its own", () => {
  for (const heard of [
    "hello",
    "Good evening!",
    "how are you",
    "what can you do?",
    "who are you",
    "thank you",
    "xyzzy",
    "?",
    "7",
  ]) {
    it(`answers ${JSON.stringify(heard)}`, async () => {
      assert.ok((await conversation([]).says(heard)).length > 0);
    });
  }

  it("takes a message over three turns", async () => {
    const talk = conversation([]);
    assert.match(await talk.says("Can I leave a message?"), /your name/);
    assert.match(await talk.says("My name is Ada Lovelace"), /^Thank you, Ada Lovelace\. What is your message/);
    assert.match(await talk.says("The engine is late."), /^Thank you, Ada Lovelace\./);
  });

  it("ends the call after goodbye", async () => {
    const chunks = await conversation([], [tool("end_call")]).ask({ role: "user", text: "OK, bye bye" });
    assert.equal(toolCallOf(chunks)?.kind, "tool_call");
  });
});

describe("model rules, hostile input", () => {
  it("answers long texts and patterns that would explode elsewhere in time linear in the text", async () => {
    const patterns = [
      "(a|aa)+$",
      "(x+x+)+y",
      "(.*)(.*)(.*)(.*)(.*)[^a]$",
      "(?:a?){60}a{60}b",
      "^(([a-z])+.)+[A-Z]([a-z])+$",
    ];
    const talk = conversation([{ intent: "hostile", patterns, say: "matched" }]);
    const began = performance.now();
    for (const text of [
      "a".repeat(16_000),
      "x".repeat(16_000),
      "\u0301".repeat(16_000),
      "👩‍👩‍👧 ".repeat(2000),
      "{{text}} $1 $& ".repeat(1000),
    ]) {
      assert.ok((await talk.says(text)).length < 1000);
    }
    assert.ok(performance.now() - began < 10_000, "a backtracking engine would never come to an end");
  });

  it("takes no slot for a template's property or program", async () => {
    const rule = {
      intent: "t",
      patterns: ["go"],
      say: "[{{constructor}}{{__proto__}}{{result.constructor}}{{unknown}}]",
    };
    assert.equal(await conversation([rule]).says("go"), "[]");
    const talk = conversation([{ ...rule, say: "{{text}}" }]);
    assert.equal(await talk.says("go {{text}}"), "go {{text}}");
  });

  it("fails and hangs where it is told to", async () => {
    const model = stages.llm({ provider: "rules", language: "en", options: { fail_on: [1] } });
    const request: LlmRequest = {
      instructions: "",
      history: [],
      turnIndex: 0,
      inputKind: "text",
      unrecognized: false,
      tools: [],
    };
    const replies = model.reply(request, new AbortController().signal)[Symbol.asyncIterator]();
    await assert.rejects(replies.next(), { name: "ProviderError", stage: "llm" });
  });

  it("refuses a pattern that the engine refuses", () => {
    const rules = [{ intent: "x", patterns: ["(?=a)"], say: "" }];
    assert.throws(() => stages.llm({ provider: "rules", language: "en", options: { rules } }), /rules\.0\.patterns\.0/);
  });
});
