/** What every language model must do, whoever makes it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { LanguageModel, LlmChunk, LlmRequest, ToolSpec } from "./language_model.ts";
import { failureContract, isPending, type Subject } from "./stage_contract.ts";

const never = new AbortController().signal;
const tool: ToolSpec = { name: "look_up", description: "Looks it up", parameters: { type: "object" } };
const request: LlmRequest = {
  instructions: "Be kind.",
  history: [{ role: "user", text: "When is breakfast, please?" }],
  turnIndex: 0,
  inputKind: "text",
  unrecognized: false,
  tools: [],
};

async function chunksOf(model: LanguageModel, asked: Partial<LlmRequest> = {}, signal = never): Promise<LlmChunk[]> {
  const chunks: LlmChunk[] = [];
  for await (const chunk of model.reply({ ...request, ...asked }, signal)) chunks.push(chunk);
  return chunks;
}

export function llmContract(subject: Subject<LanguageModel>): void {
  it("streams its answer, then tells once what it used", async () => {
    const model = await subject.open("answers");
    const chunks = await chunksOf(model);
    const text = chunks.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("");
    assert.ok(text.trim().length > 0);
    assert.deepEqual(
      chunks.flatMap((chunk, index) => (chunk.kind === "usage" ? [index] : [])),
      [chunks.length - 1],
    );
    const usage = chunks.at(-1);
    assert.ok(usage?.kind === "usage" && usage.prompt > 0 && usage.completion > 0 && usage.cached >= 0);
    model.close();
  });

  it("answers the same instance again", async () => {
    const model = await subject.open("answers");
    await chunksOf(model);
    assert.ok((await chunksOf(model, { turnIndex: 1 })).some(({ kind }) => kind === "text"));
  });

  it("says nothing to a request that was aborted before", async () => {
    const model = await subject.open("answers");
    assert.deepEqual(await chunksOf(model, {}, AbortSignal.abort()), []);
  });

  it("ends without an error and without another chunk when it is aborted in mid-answer", async () => {
    const model = await subject.open("answers");
    const abort = new AbortController();
    const after: LlmChunk[] = [];
    for await (const chunk of model.reply(request, abort.signal)) {
      if (abort.signal.aborted) after.push(chunk);
      abort.abort();
    }
    // What it used may still be told: it was used.
    assert.deepEqual(
      after.filter(({ kind }) => kind !== "usage"),
      [],
    );
  });

  it("waits for a vendor that says nothing until it is aborted, then ends without an error", async () => {
    const model = await subject.open("silent");
    const abort = new AbortController();
    const chunks = chunksOf(model, {}, abort.signal);
    assert.ok(await isPending(chunks));
    abort.abort();
    assert.deepEqual(await chunks, []);
  });

  it("is closed twice without harm", async () => {
    const model = await subject.open("answers");
    model.close();
    model.close();
  });

  if (subject.can("calls_tool")) {
    it("calls a tool that it was offered, with an object of arguments", async () => {
      const chunks = await chunksOf(await subject.open("calls_tool"), { tools: [tool] });
      const calls = chunks.filter((chunk) => chunk.kind === "tool_call");
      assert.deepEqual(
        calls.map(({ name }) => name),
        [tool.name],
      );
      assert.ok(calls[0]?.id);
      assert.equal(typeof calls[0]?.arguments, "object");
    });
  }

  failureContract("llm", subject, (model) => chunksOf(model));
}
