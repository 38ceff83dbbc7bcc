import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { otlpLimits } from "#contracts/otlp.ts";
import { type Attributes, newSpan, type OtlpSpan } from "./otlp_span.ts";
import { type MappedSpan, mapSpan } from "./semantics.ts";

const mapped = (attributes: Attributes, more: Partial<OtlpSpan> = {}): MappedSpan =>
  mapSpan({ of: { resource: {}, scope: "" }, span: { ...newSpan(), attributes, ...more } });
const fieldsOf = ({ span, sessionId, userId, tags, metadata }: MappedSpan) => ({
  ...span,
  sessionId,
  userId,
  tags,
  metadata: { ...metadata },
});

const messages = [{ role: "user", content: "Hello" }];

/** Attributes, and the fields of ours that they are. */
const table: readonly [what: string, attributes: Attributes, fields: object][] = [
  [
    "GenAI as it is now",
    {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-5",
      "gen_ai.response.model": "gpt-5-2026",
      "gen_ai.conversation.id": "s-1",
      "user.id": "u-1",
      "gen_ai.usage.input_tokens": 12,
      "gen_ai.usage.output_tokens": 8,
      "gen_ai.usage.cache_read.input_tokens": 4,
      "gen_ai.input.messages": JSON.stringify(messages),
      "gen_ai.output.messages": "[]",
    },
    {
      ...{ kind: "llm", provider: "openai", model: "gpt-5-2026", sessionId: "s-1", userId: "u-1" },
      ...{ prompt_tokens: 12, completion_tokens: 8, cached_tokens: 4, input: messages, output: [] },
    },
  ],
  [
    "GenAI as it was",
    {
      "gen_ai.operation.name": "text_completion",
      "gen_ai.system": "anthropic",
      "gen_ai.request.model": "claude",
      "gen_ai.usage.prompt_tokens": 5,
      "gen_ai.usage.completion_tokens": 6,
      "gen_ai.prompt.0.role": "user",
      "gen_ai.prompt.0.content": "Hello",
      "gen_ai.completion.0.content": "Hi",
    },
    {
      ...{ kind: "llm", provider: "anthropic", model: "claude", prompt_tokens: 5, completion_tokens: 6 },
      ...{ input: messages, output: [{ content: "Hi" }] },
    },
  ],
  [
    "the new name before the old one",
    { "gen_ai.provider.name": "new", "gen_ai.system": "old", "gen_ai.conversation.id": "a", "session.id": "b" },
    { provider: "new", sessionId: "a" },
  ],
  [
    "OpenInference",
    {
      "openinference.span.kind": "LLM",
      "llm.model_name": "mistral",
      "llm.provider": "mistralai",
      "llm.token_count.prompt": 3,
      "llm.token_count.completion": 4,
      "llm.token_count.prompt_details.cache_read": 1,
      "llm.cost.total": 0.25,
      "llm.input_messages.0.message.role": "user",
      "llm.input_messages.0.message.content": "Hello",
      "output.value": "plain",
      "session.id": "s",
      "tag.tags": ["a", "b"],
      metadata: '{"tier":"gold"}',
    },
    {
      ...{ kind: "llm", model: "mistral", provider: "mistralai", prompt_tokens: 3, completion_tokens: 4 },
      ...{ cached_tokens: 1, cost_usd: 0.25, input: messages, output: "plain", sessionId: "s" },
      ...{ tags: ["a", "b"], metadata: { tier: "gold" } },
    },
  ],
  ["an OpenInference retriever", { "openinference.span.kind": "RETRIEVER" }, { kind: "retrieval" }],
  [
    "Traceloop",
    {
      "traceloop.span.kind": "tool",
      "traceloop.entity.input": '{"room":7}',
      "traceloop.association.properties.session_id": "s",
      "traceloop.association.properties.user_id": "u",
    },
    { kind: "tool", input: { room: 7 }, sessionId: "s", userId: "u" },
  ],
  [
    "a tool",
    { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.arguments": "{}" },
    { kind: "tool", tool_name: "book", input: {} },
  ],
  [
    "the request of the Vercel SDK",
    {
      "ai.operationId": "ai.generateText.doGenerate",
      "ai.model.id": "m",
      "ai.usage.promptTokens": 1,
      "ai.usage.completionTokens": 2,
      "ai.prompt.messages": JSON.stringify(messages),
      "ai.response.text": "Hi",
    },
    { kind: "llm", model: "m", prompt_tokens: 1, completion_tokens: 2, input: messages, output: "Hi" },
  ],
  [
    "what repeats the sums of the requests below it",
    { "gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.cost": 1 },
    { kind: "agent", prompt_tokens: null, cost_usd: null },
  ],
  ["an HTTP request", { "http.request.method": "GET" }, { kind: "http" }],
  ["nothing that we know", { foo: "bar" }, { kind: "other", model: null, input: null, status: "succeeded" }],
  ["counts that are none", { "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": -1 }, { prompt_tokens: null }],
  ["text that only looks like JSON", { "input.value": "[not json" }, { input: "[not json" }],
];

describe("attributes of a span", () => {
  for (const [what, attributes, fields] of table) {
    it(`say ${what}`, () => {
      const found = fieldsOf(mapped(attributes)) as Record<string, unknown>;
      const asked = Object.fromEntries(Object.keys(fields).map((name) => [name, found[name]]));
      assert.deepEqual(JSON.parse(JSON.stringify(asked)), fields);
    });
  }

  it("may have messages in events, one an event or all in one", () => {
    const at = { atUs: 0 };
    const each = [
      { ...at, name: "gen_ai.user.message", attributes: { content: "Hello" } },
      { ...at, name: "gen_ai.choice", attributes: { content: "Hi" } },
    ];
    assert.deepEqual(mapped({}, { events: each }).span.input, messages);
    assert.deepEqual(mapped({}, { events: each }).span.output, [{ role: "assistant", content: "Hi" }]);
    const whole = [{ ...at, name: "gen_ai.content.prompt", attributes: { "gen_ai.prompt": JSON.stringify(messages) } }];
    assert.deepEqual(mapped({}, { events: whole }).span.input, messages);
  });

  it("say why it failed, by status or by exception", () => {
    assert.equal(mapped({}, { statusCode: 2, statusMessage: "no room" }).span.status_message, "no room");
    const events = [{ name: "exception", atUs: 0, attributes: { "exception.message": "boom" } }];
    const failed = mapped({}, { statusCode: 2, events }).span;
    assert.deepEqual([failed.status, failed.status_message], ["failed", "boom"]);
    assert.equal(mapped({}, { statusCode: 1, events }).span.status, "succeeded");
  });

  it("stay as they are up to their bound, and are cut above it", () => {
    const name = "text";
    const fits = "x".repeat(otlpLimits.attributeBytesMax - name.length);
    assert.deepEqual(mapped({ text: fits }).span.truncated, []);
    assert.equal(mapped({ text: fits }).span.attributes.text, fits);
    const { span } = mapped({ text: `${fits}x` });
    assert.deepEqual([span.truncated, span.attributes.text], [["attributes"], fits]);
  });

  it("become input whole, however long, and then stand there alone", () => {
    const long = "x".repeat(2 * otlpLimits.attributeBytesMax);
    const { span } = mapped({ "input.value": long });
    assert.deepEqual([span.input, span.truncated, Object.keys(span.attributes)], [long, [], []]);
  });
});
